package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// answerBytesMax bounds what is read of a server's answer.
const answerBytesMax = 64 << 20

// uriSetting is the flag by which a command asks a server that runs.
func uriSetting(usage string) setting {
	return setting{
		name: "uri", value: "URI", flagOnly: true, usage: usage,
		set: func(c *config, v []string) error {
			u, err := url.Parse(v[0])
			if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
				return fmt.Errorf("%q is not an address such as http://127.0.0.1:8181", v[0])
			}
			c.URI = strings.TrimSuffix(v[0], "/")
			return nil
		},
	}
}

// askServer sends a request to the server at uri, with body as JSON if it is not nil, and decodes the answer into answer.
func askServer(ctx context.Context, uri, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, uri+path, content)
	if err != nil {
		return fmt.Errorf("ask %s: %w", uri, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer response.Body.Close()
	text := io.LimitReader(response.Body, answerBytesMax)
	if response.StatusCode != http.StatusOK {
		return refusal(uri, response.Status, text)
	}
	if err := json.NewDecoder(text).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", uri, err)
	}
	return nil
}

// refusal returns what a server said instead of an answer: its message, if it is one of ours.
func refusal(uri, status string, body io.Reader) error {
	text, _ := io.ReadAll(io.LimitReader(body, 4<<10))
	var ours struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(text, &ours) == nil && ours.Error.Message != "" {
		text = []byte(ours.Error.Message)
	}
	return fmt.Errorf("%s answered %s: %s", uri, status, strings.TrimSpace(string(text)))
}
