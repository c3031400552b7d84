package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"moorage/catalog"
	"moorage/registry/pebble"
)

// checkReportBytesMax bounds what is read of a server's answer.
const checkReportBytesMax = 64 << 20

func checkCommand() command {
	return command{
		name:    "check",
		summary: "look whether everything in the store holds together",
		text: "Checks that every table's metadata file exists and can be read, that names and tables " +
			"belong to each other one to one, and that no record names a missing file. Prints what is wrong, " +
			"changes nothing, and exits with 0 if all is well and 1 if not.\n\n" +
			"Without --uri it opens the store itself; if that is a folder, its server must be stopped.\n",
		settings: append(nodeSettings(), setting{
			name: "uri", value: "URI", flagOnly: true,
			usage: "Ask the server that runs at this address to check itself.",
			set: func(c *config, v []string) error {
				u, err := url.Parse(v[0])
				if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
					return fmt.Errorf("%q is not an address such as http://127.0.0.1:8181", v[0])
				}
				c.URI = strings.TrimSuffix(v[0], "/")
				return nil
			},
		}),
		validate: validateS3,
		run:      check,
	}
}

func check(ctx context.Context, c config, env environment) error {
	look := checkRunning
	if c.URI == "" {
		look = checkStopped
	}
	report, err := look(ctx, c, env)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s, %s, %s\n",
		counted(report.Warehouses, "warehouse"), counted(report.Namespaces, "namespace"), counted(report.Tables, "table"))
	if len(report.Problems) == 0 {
		fmt.Fprintln(env.stdout, "no problems")
		return nil
	}
	for _, problem := range report.Problems {
		fmt.Fprintln(env.stdout, "problem: "+problem)
	}
	return errors.New(counted(len(report.Problems), "problem"))
}

// counted returns a number and what it counts: "1 table", "2 tables".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkStopped opens the store, which nobody else may have open, and checks it.
func checkStopped(ctx context.Context, c config, env environment) (_ catalog.Report, err error) {
	node, err := openStopped(ctx, c, env)
	if errors.Is(err, pebble.ErrLocked) {
		err = fmt.Errorf("%w, or ask it with --uri", err)
	}
	if err != nil {
		return catalog.Report{}, err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	return node.catalog.Check(ctx)
}

// checkRunning asks the server at c.URI.
func checkRunning(ctx context.Context, c config, _ environment) (catalog.Report, error) {
	uri := c.URI
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri+"/management/v1/check", nil)
	if err != nil {
		return catalog.Report{}, fmt.Errorf("ask %s: %w", uri, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return catalog.Report{}, fmt.Errorf("ask the server: %w", err)
	}
	defer response.Body.Close()
	body := io.LimitReader(response.Body, checkReportBytesMax)
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(body, 1<<10))
		return catalog.Report{}, fmt.Errorf("%s answered %s: %s", uri, response.Status, strings.TrimSpace(string(text)))
	}
	var report catalog.Report
	if err := json.NewDecoder(body).Decode(&report); err != nil {
		return catalog.Report{}, fmt.Errorf("read the answer of %s: %w", uri, err)
	}
	return report, nil
}
