package main

import (
	"fmt"
	"net/url"
	"strings"
)

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
