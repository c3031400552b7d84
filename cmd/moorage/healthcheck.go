package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"moorage"
	"moorage/internal/cli"
)

const (
	// healthWait is the timeout of a health check. A server whose store does not answer reports
	// that sooner.
	healthWait = 5 * time.Second
	// healthBytesMax is the maximum length of the answer, which is a short JSON object.
	healthBytesMax = 64 << 10
)

// checkHealth asks the server on this machine whether it is ready. It uses the settings with which
// the server was started.
func checkHealth(ctx context.Context, c cli.Config, env cli.Environment) error {
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	address, scheme := c.Listen, "http"
	switch {
	case c.DebugListen != "":
		address = c.DebugListen
	case c.TLSCert != "":
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://localhost/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: healthTransport(address)}).Do(request)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", address, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, healthBytesMax))
	if err != nil {
		return fmt.Errorf("read the answer of the server at %s: %w", address, err)
	}
	if answer.StatusCode == http.StatusOK {
		_, err := fmt.Fprintln(env.Stdout, "ready")
		return err
	}
	var failure struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &failure) != nil || failure.Error.Message == "" {
		failure.Error.Message = answer.Status
	}
	return cli.No("the server at %s is not ready: %s", address, moorage.OneLine(failure.Error.Message))
}

// healthTransport returns a transport whose connections all go to address. If the host of address
// means every address of the machine, they go to the machine itself.
//
// It does not verify the certificate, which is for the name that clients use: the command does not
// know that name. The request contains no secret, and the answer changes nothing.
func healthTransport(address string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, address)
		},
	}
}
