package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// health is the command health.
func health(ctx context.Context, p *person) error {
	found, err := p.find(ctx, p.Name, kindTable)
	if err != nil {
		return err
	}
	query := found.query()
	query.Set("deep", strconv.FormatBool(p.Deep))
	var answer client.Health
	asked := client.Request{Method: http.MethodGet, Path: client.Path("health"), Query: query}
	if err := p.server.Do(ctx, asked, &answer); err != nil {
		return err
	}
	if err := p.printHealth(answer); err != nil {
		return err
	}
	isBad := answer.Level == client.LevelBad
	isWorse := isBad || answer.Level == client.LevelWarn && p.FailOn == cli.FailOnWarn
	if isWorse && p.FailOn != cli.FailOnNever {
		return cli.No("%s is not in good shape: %s", found, answer.Level)
	}
	return nil
}

// printHealth prints the findings in the form of --output.
func (p *person) printHealth(answer client.Health) error {
	switch p.Output {
	case cli.OutputJSON:
		return printJSON(p.out, answer)
	case cli.OutputLines:
		encoder := json.NewEncoder(p.out)
		for _, finding := range answer.Findings {
			if err := encoder.Encode(finding); err != nil {
				return err
			}
		}
		return nil
	case cli.OutputNames:
		for _, finding := range answer.Findings {
			if finding.Level != client.LevelOK {
				fmt.Fprintln(p.out, finding.What)
			}
		}
		return nil
	}
	return p.paged(func(out *term.Output) error {
		for _, finding := range answer.Findings {
			writeHealthFinding(out, finding, p.Output == cli.OutputWide)
		}
		if shape := answer.Shape; shape != nil && shape.Stopped != "" {
			fmt.Fprintf(out, "      only %d manifests were read: %s\n", shape.Manifests, term.Clean(shape.Stopped))
		}
		return nil
	})
}

// writeHealthFinding prints a finding, and on a second line its remedy.
func writeHealthFinding(out *term.Output, finding client.HealthFinding, isWide bool) {
	style := map[string]term.Style{client.LevelWarn: term.Warning, client.LevelBad: term.Bad}[finding.Level]
	fmt.Fprintf(out, "%s  %s  %s\n", out.Paint(style, fmt.Sprintf("%-4s", finding.Level)),
		fmt.Sprintf("%-12s", finding.What), term.Clean(finding.Fact))
	if isWide && finding.Limit != "" {
		fmt.Fprintf(out, "      limit: %s\n", finding.Limit)
	}
	if finding.Command != "" {
		fmt.Fprintf(out, "      %s\n", out.Paint(term.Strong, term.Clean(finding.Command)))
	}
}
