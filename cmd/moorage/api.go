package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"moorage/internal/cli"
	"moorage/management/client"
)

// callAPI is the command api.
func callAPI(ctx context.Context, p *person) error {
	body := []byte(p.Body)
	if name, isFile := strings.CutPrefix(p.Body, "@"); isFile {
		var err error
		if body, err = os.ReadFile(name); err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
	}
	headers := make(http.Header)
	for _, each := range p.Headers {
		name, value, ok := strings.Cut(each, ":")
		if !ok {
			return cli.Usage(fmt.Sprintf("%q is not NAME:VALUE", each))
		}
		headers.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	response, err := p.server.Send(ctx, p.Method, p.Path, headers, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusBadRequest {
		_, err = io.Copy(p.out, response.Body)
		return err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, client.RefusalBytesMax))
	if err != nil {
		return err
	}
	if _, err := p.out.Write(append(bytes.TrimRight(text, "\n"), '\n')); err != nil {
		return err
	}
	refused := p.server.RefusalOf(response, text)
	isReading := p.Method == http.MethodGet || p.Method == http.MethodHead
	if !isReading && refused.Type == "" && response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%w; %w", refused, client.ErrOutcomeUnknown) // a proxy lost the answer
	}
	return refused
}
