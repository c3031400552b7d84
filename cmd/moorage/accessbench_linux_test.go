package main

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"moorage/testkit/servers"
)

// BenchmarkServerLoadAccess compares loads from a server with API keys and an audit log, in their
// default configuration, with loads from a server without them. The clients send a key, or a token
// for a key, and have their privilege on the warehouse. The servers take turns, as in
// BenchmarkServerLoad. The benchmark reports medians: requests a second, processor time for each
// request, and the ratio of the two rates.
func BenchmarkServerLoadAccess(b *testing.B) {
	const tables = 300
	binary := servers.Build(b)
	for _, credential := range []string{"key", "token"} {
		b.Run("credential="+credential, func(b *testing.B) {
			off, process := startBinary(b, binary)
			without := &loaded{address: off.address(), pid: process.Process.Pid}
			loadsWithout := prepareLoads(b, off, tables, "", "")

			data := b.TempDir()
			root := command(b, binary, "key", "create", "root", "--admin", "--data", data)
			on, process := startBinaryOver(b, binary, data, "--keys")
			with := &loaded{address: on.address(), pid: process.Process.Pid}
			asRoot := []string{"--uri", on.uri, "--token", root}
			reader := command(b, binary, append([]string{"key", "create", "reader"}, asRoot...)...)
			for privileges, to := range map[string]string{"create": "key:root", "read": "key:reader"} {
				command(b, binary, append([]string{"grant", privileges, "on", "warehouse", "default", "to", to}, asRoot...)...)
			}
			if credential == "token" {
				var status int
				status, reader = on.token(b, "", "grant_type", "client_credentials", "client_secret", reader)
				if status != http.StatusOK {
					b.Fatalf("token: %d", status)
				}
			}
			loadsWith := prepareLoads(b, on, tables, root, reader)

			var shares []float64
			for b.Loop() {
				without.askLoads(b, loadsWithout)
				with.askLoads(b, loadsWith)
				shares = append(shares, last(with.rates)/last(without.rates))
			}
			for name, server := range map[string]*loaded{"off": without, "on": with} {
				b.ReportMetric(median(server.rates), name+"-req/s")
				b.ReportMetric(median(server.costs), name+"-cpu-µs/req")
			}
			b.ReportMetric(median(shares), "share")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// command runs a command of a binary and returns the last line of its output.
func command(b *testing.B, binary string, args ...string) string {
	b.Helper()
	output, err := exec.CommandContext(b.Context(), binary, args...).Output()
	if err != nil {
		b.Fatalf("%v: %v", args, err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1]
}
