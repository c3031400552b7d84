package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"moorage/catalog/warehouses"
	"moorage/identity"
	"moorage/internal/cli"
	"moorage/testkit/loopback"
)

func TestServe(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	listen, err := loopback.FreeAddress() // no other listener gets it when the server has ended
	if err != nil {
		t.Fatal(err)
	}
	server := startServe(t, "--store", "memory", "--data", data, "--listen", listen)

	if code, body := server.request(t, "GET", "/v1/config?warehouse=default", ""); code != http.StatusOK {
		t.Errorf("config: %d %s", code, body)
	}
	if made, want := server.makeTable(t), fmt.Sprintf(`"location":"file://%s/warehouse/harbour/ships"`, data); !strings.Contains(made, want) {
		t.Errorf("create table: want %s in %s", want, made)
	}
	for path, want := range map[string]string{
		"/healthz": "", "/readyz": "",
		"/metrics": `moorage_store_call_duration_seconds_count{call="apply",outcome="done"}`,
	} {
		if code, body := server.request(t, "GET", path, ""); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, want %s in %s", path, code, want, body)
		}
	}
	if code := server.stop(); code != cli.ExitDone {
		t.Errorf("exit code %d; stderr:\n%s", code, server.stderr)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(server.uri, "http://")); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
}

func TestStoreOutlivesTheServer(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := startServe(t, "--data", data)
	server.makeTable(t)
	server.stop()

	server = startServe(t, "--data", data)
	if code, body := server.request(t, "GET", tablePath, ""); code != http.StatusOK {
		t.Errorf("load table after a restart: %d %s", code, body)
	}
}

// TestStoreIsForItsOwner checks that no other user can read the records of a store: neither in a
// data folder that the server makes, nor in an existing one that others can read.
func TestStoreIsForItsOwner(t *testing.T) {
	t.Parallel()
	mode := func(path string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	made, found := filepath.Join(t.TempDir(), "data"), t.TempDir()
	if err := os.Chmod(found, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{made, found} {
		startServe(t, "--data", data).stop()
		if got := mode(filepath.Join(data, cli.StoreFolder)); got != 0o700 {
			t.Errorf("the store in %s: %o", data, got)
		}
	}
	if mode(made) != 0o700 || mode(found) != 0o755 {
		t.Errorf("the data folders: %o, %o", mode(made), mode(found))
	}
}

func TestSecondServerOnOneStore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, "is in use by another process\n"},
		{[]string{"doctor", "--deep", "--data", data}, "is in use by another process: stop the server first, or ask it with --uri\n"},
		{[]string{"warehouse", "list", "--data", data}, "is in use by another process: stop the server first, or ask it with --uri\n"},
	} {
		got := runToEnd(t, row.args...)
		if got.code != cli.ExitFailed || !isSentence(got.stderr, row.want) {
			t.Errorf("%q: exit %d, stderr %q; want 1 and a sentence with %q", row.args, got.code, got.stderr, row.want)
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	parent := t.TempDir()
	for _, store := range []string{"memory", filepath.Join(parent, "store")} {
		got := runToEnd(t, "serve", "--store", store, "--data", filepath.Join(parent, "data"), "--listen", address)
		if got.code != cli.ExitFailed || !isSentence(got.stderr, address+" is in use") {
			t.Errorf("exit %d, stderr %q; want 1 and one sentence", got.code, got.stderr)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Errorf("--store %s: left behind %v, %v; want nothing", store, left, err)
		}
	}
}

func TestDataFolderThatCannotBe(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "file", "")
	got := runToEnd(t, "serve", "--data", filepath.Join(file, "below"), "--listen", "127.0.0.1:0")
	if got.code != cli.ExitFailed || !isSentence(got.stderr, file) {
		t.Errorf("exit %d, stderr %q; want 1 and one sentence", got.code, got.stderr)
	}
}

// isSentence reports whether stderr is one line from moorage that contains about.
func isSentence(stderr, about string) bool {
	return strings.HasPrefix(stderr, "moorage: ") && strings.Count(stderr, "\n") == 1 && strings.Contains(stderr, about)
}

// TestSignalLetsCommitsEnd sends half of a commit, then the signal, then the other half.
func TestSignalLetsCommitsEnd(t *testing.T) {
	t.Parallel()
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP) // otherwise a process started by nohup would start processes that ignore it
	t.Cleanup(func() { signal.Stop(hangUps) })
	for _, stop := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(stop.String(), func(t *testing.T) { signalAmidCommit(t, stop) })
	}
}

func signalAmidCommit(t *testing.T, stop syscall.Signal) {
	data := t.TempDir()
	server, process := startProcess(t, "--data", data)
	server.makeTable(t)
	address := strings.TrimPrefix(server.uri, "http://")
	const commit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"master":"Ada"}}]}`

	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/namespaces/harbour/tables/ships HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", address, len(commit))
	answers := bufio.NewReader(conn)
	// The server asks for the body when its handler reads it. The commit is then in progress.
	if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("got %q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, commit[:len(commit)/2])
	if err := process.Process.Signal(stop); err != nil {
		t.Fatal(err)
	}
	awaitClosed(t, address)
	fmt.Fprint(conn, commit[len(commit)/2:])
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatalf("the commit was cut off: %v; stderr:\n%s", err, server.stderr)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the commit was answered %s", response.Status)
	}
	if code := server.wait(); code != cli.ExitDone {
		t.Errorf("exit code %d; stderr:\n%s", code, server.stderr)
	}
	server = startServe(t, "--data", data)
	if code, body := server.request(t, "GET", tablePath, ""); code != http.StatusOK || !strings.Contains(body, `"master":"Ada"`) {
		t.Errorf("load after a restart: %d %s", code, body)
	}
}

// TestHangUpIsIgnored starts a server in the way that nohup does.
func TestHangUpIsIgnored(t *testing.T) {
	t.Parallel()
	server, process := startProcessAs(t, asIgnoring, "--store", "memory", "--data", t.TempDir())
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if code, body := server.request(t, "GET", "/v1/config", ""); code != http.StatusOK {
			t.Fatalf("config after the signal: %d %s", code, body)
		}
	}
	if code := server.stop(); code != cli.ExitDone {
		t.Errorf("exit code %d; stderr:\n%s", code, server.stderr)
	}
}

// awaitClosed dials until the address no longer accepts connections.
func awaitClosed(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatalf("%s still accepts connections", address)
}

// TestShutdownIsBounded stops a server while a request never ends.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--shutdown-timeout", "1ms")
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.uri, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("got %q, %v", line, err)
	}
	if code := server.stop(); code != cli.ExitFailed || !strings.Contains(server.stderr.String(), "cut off") {
		t.Errorf("exit code %d; stderr:\n%s", code, server.stderr)
	}
}

// TestReadyQuickly starts a process a few times, and checks the quickest start, because others may
// share the machine. If a process takes long to print its version, the machine is slow, not the
// server.
func TestReadyQuickly(t *testing.T) {
	data := t.TempDir()
	const most, versions = time.Second, 8
	var ready, said []time.Duration
	for len(ready) < 10 {
		ready, said = append(ready, timeToReady(t, data)), append(said, timeToVersion(t))
		best, limit := slices.Min(ready), max(most, versions*slices.Min(said))
		if len(ready) >= 3 && best <= limit {
			t.Logf("ready after %s, and the version after %s", best, slices.Min(said))
			return
		}
	}
	t.Errorf("ready after %s, want %s at most, or %d times what it takes to say the version: %s", ready, most, versions, said)
}

// timeToReady returns the time from the start of a process until its server answers that it is
// ready.
func timeToReady(t *testing.T, data string) time.Duration {
	t.Helper()
	begin := time.Now()
	server, _ := startProcess(t, "--data", data)
	if code, body := server.request(t, "GET", "/readyz", ""); code != http.StatusOK {
		t.Fatalf("readyz: %d %s", code, body)
	}
	took := time.Since(begin)
	if code := server.stop(); code != cli.ExitDone {
		t.Fatalf("exit code %d; stderr:\n%s", code, server.stderr)
	}
	return took
}

// timeToVersion returns how long a process takes to print its version.
func timeToVersion(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	process := exec.CommandContext(t.Context(), os.Args[0], "version")
	process.Env = append(os.Environ(), asCommand+"="+asUsual, "GORACE=atexit_sleep_ms=0")
	if err := process.Run(); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// TestPrintedCurlLine runs the curl line that the server prints.
func TestPrintedCurlLine(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir())
	_, after, _ := strings.Cut("\n"+server.stdout.String(), "\ncurl\n")
	line, _, _ := strings.Cut(after, "\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, "sh", "-c", line).Output()
	if err != nil || !strings.Contains(string(output), `"endpoints"`) {
		t.Errorf("%s: %v, printed %q", line, err, output)
	}
}

func TestBannerNamesEveryClient(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir())
	text := server.stdout.String()
	for _, want := range []string{
		`load_catalog("moorage", type="rest", uri="` + server.uri + `", warehouse="default")`,
		"spark.sql.catalog.moorage.uri=" + server.uri,
		"iceberg.rest-catalog.uri=" + server.uri + "\n",
		"fs.native-local.enabled=true\n",
		"CREATE CATALOG moorage WITH ('type' = 'iceberg', 'catalog-type' = 'rest', 'uri' = '" + server.uri + "', 'warehouse' = 'default'",
		"DuckDB\n",
		"ATTACH 'default' AS moorage (TYPE ICEBERG, ENDPOINT '" + server.uri + "'",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the banner lacks %s:\n%s", want, text)
		}
	}
}

// TestBannerShowsCredentials checks that, if callers must authenticate, every printed line has a
// placeholder for the credential.
func TestBannerShowsCredentials(t *testing.T) {
	t.Parallel()
	const uri = "https://moorage:1"
	for _, row := range []struct {
		config cli.Config
		want   []string
	}{
		{cli.Config{APIKeys: true}, []string{
			"curl -s -H 'Authorization: Bearer KEY' 'https://moorage:1/v1/config?warehouse=wh'",
			`warehouse="wh", credential="KEY")`,
			"--conf spark.sql.catalog.moorage.credential=KEY",
			"--conf spark.sql.catalog.moorage.oauth2-server-uri=https://moorage:1/v1/oauth/tokens",
			"iceberg.rest-catalog.security=OAUTH2\n  iceberg.rest-catalog.oauth2.credential=KEY\n",
			"'credential' = 'KEY', 'oauth2-server-uri' = 'https://moorage:1/v1/oauth/tokens'",
			"CREATE SECRET moorage_secret (TYPE ICEBERG, TOKEN 'KEY');",
			"SUPPORT_NESTED_NAMESPACES true, SECRET moorage_secret);",
		}},
		{cli.Config{Issuers: make([]identity.IssuerConfig, 1)}, []string{
			"Bearer TOKEN", `token="TOKEN"`, "spark.sql.catalog.moorage.token=TOKEN", "oauth2.token=TOKEN", "'token' = 'TOKEN'",
			"TOKEN 'TOKEN'",
		}},
		{cli.Config{}, []string{"AUTHORIZATION_TYPE 'none'"}},
	} {
		var out strings.Builder
		writeBanner(&out, uri, warehouses.Warehouse{Name: "wh", Location: "file:///wh"}, nil, shownTo(row.config))
		for _, want := range row.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the banner lacks %s:\n%s", want, out.String())
			}
		}
		shows := shownTo(row.config) != shownNothing
		if strings.Contains(out.String(), "'none'") == shows || strings.Contains(out.String(), "OAUTH2") != shows {
			t.Errorf("the banner of a server whose clients show %q:\n%s", shownTo(row.config), out.String())
		}
	}
}

// TestPrintedJarsAreTested checks that the jars in the banner are those with which the suites run.
func TestPrintedJarsAreTested(t *testing.T) {
	t.Parallel()
	for suite, coordinates := range map[string][]string{
		"spark": {sparkRuntime, sparkAWS},
		"flink": append(strings.Split(flinkJars, ", "), flinkAWS),
	} {
		pom, err := os.ReadFile("../../interop/" + suite + "/pom.xml")
		if err != nil {
			t.Fatal(err)
		}
		for _, coordinate := range coordinates {
			parts := strings.Split(coordinate, ":")
			text := strings.ReplaceAll(string(pom), "${iceberg.version}", versionIn(string(pom)))
			want := regexp.MustCompile("<groupId>" + regexp.QuoteMeta(parts[0]) + `</groupId>\s*<artifactId>` + regexp.QuoteMeta(parts[1]) +
				`</artifactId>\s*<version>` + regexp.QuoteMeta(parts[2]) + `</version>`)
			if !want.MatchString(text) {
				t.Errorf("%s is not in the pom.xml of the suite %s:\n%s", coordinate, suite, pom)
			}
		}
	}
}

// versionIn returns the version of Iceberg in a pom.xml.
func versionIn(pom string) string {
	_, after, _ := strings.Cut(pom, "<iceberg.version>")
	version, _, _ := strings.Cut(after, "</iceberg.version>")
	return version
}

func TestLogFormat(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--log-format", "json")
	server.stop()
	for line := range strings.Lines(server.stderr.String()) {
		if !strings.HasPrefix(line, `{"time":`) {
			t.Errorf("log line %q is not JSON", line)
		}
	}
}

func TestWarehouseFolderIsMade(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "deep", "data")
	startServe(t, "--store", "memory", "--data", data).stop()
	if info, err := os.Stat(filepath.Join(data, "warehouse")); err != nil || !info.IsDir() {
		t.Errorf("got %v, %v", info, err)
	}
}

// TestHostNames sends requests with the servers' own host names, and with a name that a web page
// might have pointed at the server.
func TestHostNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		host string
		want int
	}{
		{nil, "localhost:8181", http.StatusOK},
		{nil, "rebound.example", http.StatusMisdirectedRequest},
		{[]string{"--host", "a.example", "--host", "b.example"}, "b.example:443", http.StatusOK},
		{[]string{"--host", "a.example"}, "rebound.example", http.StatusMisdirectedRequest},
		{[]string{"--insecure=no-auth"}, "rebound.example", http.StatusOK},
		{[]string{"--insecure=no-auth", "--host", "a.example"}, "rebound.example", http.StatusMisdirectedRequest},
	} {
		server := startServe(t, append([]string{"--store", "memory", "--data", t.TempDir()}, tt.args...)...)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.uri+"/v1/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = tt.host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tt.want {
			t.Errorf("%q, asked for %s: %s, want %d", tt.args, tt.host, response.Status, tt.want)
		}
		server.stop()
	}
}

func TestPrintedURI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		address string
		config  cli.Config
		want    string
	}{
		{"127.0.0.1:8181", cli.Config{Listen: "127.0.0.1:8181"}, "http://127.0.0.1:8181"},
		{"[::1]:80", cli.Config{Listen: "[::1]:80"}, "http://[::1]:80"},
		{"0.0.0.0:8181", cli.Config{Listen: "0.0.0.0:8181"}, "http://127.0.0.1:8181"},
		{"[::]:8181", cli.Config{Listen: ":8181"}, "http://127.0.0.1:8181"},
		{"127.0.0.1:4711", cli.Config{Listen: "localhost:0"}, "http://localhost:4711"},
		{"0.0.0.0:8181", cli.Config{Listen: ":8181", Hosts: []string{"catalog.example.com", "other"}}, "http://catalog.example.com:8181"},
	} {
		if got := printedURI(tt.config, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.address)), false); got != tt.want {
			t.Errorf("%s, %s: got %s, want %s", tt.address, tt.config.Listen, got, tt.want)
		}
	}
}
