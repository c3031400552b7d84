package cli

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPrecedence gives the same setting in all three places: a flag, the environment and the file.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "moorage.yaml", "listen: 127.0.0.1:3\nundrop-window: 3h\ncache-size: 3MiB\nlog-level: error\n"+
		"allow-location:\n  - file:///three\n  - file:///drei\n")
	environ := []string{
		"MOORAGE_LISTEN=127.0.0.1:2", "MOORAGE_UNDROP_WINDOW=2h", "MOORAGE_ALLOW_LOCATION=file:///two file:///zwei",
		"MOORAGE_CACHE_SIZE=2MiB", "OTHER=1", "MOORAGE_PORT_8181_TCP=tcp://10.0.0.1:8181",
	}
	args := []string{"--config", file, "--listen=127.0.0.1:1", "--undrop-window", "1h", "--allow-location", "file:///one"}

	got := mustLoad(t, args, environ)
	if got.Listen != "127.0.0.1:1" || got.UndropWindow != time.Hour || !slices.Equal(got.AllowLocations, []string{"file:///one"}) {
		t.Errorf("flags do not win: %+v", got)
	}
	if got.CacheBytes != 2<<20 {
		t.Errorf("environment does not win over the file: cache size %d", got.CacheBytes)
	}
	if got.LogLevel != slog.LevelError {
		t.Errorf("file does not win over the default: level %v", got.LogLevel)
	}
	if got.ConnectionsMax != 4096 || got.Data != "./moorage-data" || got.LogFormat != "text" {
		t.Errorf("defaults are missing: %+v", got)
	}

	got = mustLoad(t, nil, append(environ, "MOORAGE_CONFIG="+file))
	if got.Listen != "127.0.0.1:2" || !slices.Equal(got.AllowLocations, []string{"file:///two", "file:///zwei"}) {
		t.Errorf("environment does not win over the file: %+v", got)
	}
	got = mustLoad(t, []string{"--config=" + file}, nil)
	if got.Listen != "127.0.0.1:3" || !slices.Equal(got.AllowLocations, []string{"file:///three", "file:///drei"}) {
		t.Errorf("file is not read: %+v", got)
	}
}

func TestStoreDir(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "moorage-data/registry"},
		{[]string{"--data", "/d"}, "/d/registry"},
		{[]string{"--data", "/d", "--store", "/s"}, "/s"},
	} {
		if got := mustLoad(t, test.args, nil).StoreDir(); got != test.want {
			t.Errorf("%q: store in %s, want %s", test.args, got, test.want)
		}
	}
}

func TestFaultsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "bad.yaml", "lisden: 1\nlog-format: xml\ncache-size: [1, 2]\nlog-level: info\nlog-level: warn\n")
	_, err := load(named("serve"), []string{
		"--config", file, "--lsten", "--listen", "0.0.0.0", "stray", "--port", "9", "--data", "", "--shutdown-timeout", "0s", "--store-wait", "-6s", "--store",
	}, []string{"MOORAGE_CACHE_SIZE=lots", "MOORAGE_INSECURE=perhaps"})
	want := []string{
		"there is no flag --lsten; did you mean --listen?",
		"there is no flag --port",
		"--store: needs a value",
		`unexpected argument "stray"`,
		file + ", line 1: lisden: there is no such setting; did you mean listen?",
		file + ", line 3: cache-size: it must be one value",
		file + ", line 5: log-level: given more than once",
		"--data: must not be empty",
		`--listen: "0.0.0.0" is not HOST:PORT with a port from 0 to 65535`,
		file + `, line 2: log-format: "xml" is not text or json`,
		`MOORAGE_INSECURE: "perhaps" is not plain-http, no-auth or open-to-issuer`,
		`MOORAGE_CACHE_SIZE: "lots" is not a size such as 64MiB, at least 1`,
		`--store-wait: "-6s" is not a duration such as 30s, at least 0s`,
		`--shutdown-timeout: "0s" is not a duration such as 45s, more than 0`,
	}
	var usage *usageError
	if !errors.As(err, &usage) {
		t.Fatalf("got %v, want a *usageError", err)
	}
	if !slices.Equal(usage.faults, want) {
		t.Errorf("got faults\n%q\nwant\n%q", usage.faults, want)
	}
}

// An argument that starts like a flag but has no name is one fault. The arguments after it are
// still read.
func TestFlagsWithoutAName(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"---data", "---", "-=x", "--=x"} {
		_, err := load(named("serve"), []string{"--data", "d", arg, "x", "--log-level", "loud"}, nil)
		want := []string{"there is no flag " + arg, `--log-level: "loud" is not debug, info, warn or error`}
		var usage *usageError
		if !errors.As(err, &usage) || !slices.Equal(usage.faults, want) {
			t.Errorf("%s: got %v, want %q", arg, err, want)
		}
	}
}

func TestConfigFileFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, content, want string }{
		{"not YAML", "a: [", ""},
		{"not a mapping", "- a\n", "{file}: it must be a mapping from settings to values"},
		{"null", "data:\n", "{file}, line 1: data: it must be one value"},
		{"nested list", "allow-location: [[a]]\n", "{file}, line 1: allow-location: it must be a list of texts"},
		{"config in config", "config: other.yaml\n", "{file}, line 1: config: there is no such setting"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := writeFile(t, "c.yaml", test.content)
			_, err := load(named("serve"), []string{"--config", file}, nil)
			var usage *usageError
			if !errors.As(err, &usage) || len(usage.faults) != 1 {
				t.Fatalf("got %v, want one fault", err)
			}
			want := test.want
			if want == "" {
				return // the wording comes from the YAML parser
			}
			if got := usage.faults[0]; got != file+want[len("{file}"):] {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if _, err := load(named("serve"), []string{"--config", filepath.Join(t.TempDir(), "none.yaml")}, nil); err == nil {
		t.Error("a file that does not exist is no fault")
	}
	if got := mustLoad(t, []string{"--config", writeFile(t, "empty.yaml", "# nothing\n")}, nil); got.LogFormat != "text" {
		t.Errorf("an empty file changes the defaults: %+v", got)
	}
}

func TestListenBeyondLoopback(t *testing.T) {
	t.Parallel()
	for listen, loopback := range map[string]bool{
		"127.0.0.1:0": true, "127.8.8.8:1": true, "[::1]:80": true, "localhost:0": true, "[::ffff:127.0.0.1]:0": true,
		":8181": false, "0.0.0.0:8181": false, "[::]:0": false, "192.0.2.1:1": false, "example.org:80": false,
	} {
		_, err := load(named("serve"), []string{"--listen", listen}, nil)
		if (err == nil) != loopback {
			t.Errorf("--listen %s: got error %v, want one: %t", listen, err, !loopback)
		}
		if _, err := load(named("serve"), []string{"--listen", listen, "--insecure=no-auth"}, nil); err != nil {
			t.Errorf("--listen %s --insecure=no-auth: %v", listen, err)
		}
		for _, row := range []struct {
			args []string
			want bool
		}{
			{[]string{"--insecure=plain-http"}, false}, {[]string{"--keys"}, false}, {[]string{"--trusted-proxy", "10.0.0.0/8"}, false},
			{[]string{"--tls-cert", "a", "--tls-key", "b"}, false}, {[]string{"--keys", "--insecure", "plain-http"}, true},
			{[]string{"--keys", "--trusted-proxy", "10.0.0.1"}, true}, {[]string{"--keys", "--tls-cert", "a", "--tls-key", "b"}, true},
			{[]string{"--tls-client-ca", "c", "--tls-cert", "a", "--tls-key", "b"}, true},
		} {
			_, err := load(named("serve"), append([]string{"--listen", listen}, row.args...), nil)
			if (err == nil) != (row.want || loopback) {
				t.Errorf("--listen %s %v: got error %v", listen, row.args, err)
			}
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	if got := mustLoad(t, nil, nil).UndropWindow; got != 7*24*time.Hour {
		t.Errorf("the undrop window is %s by default", got)
	}
	for text, want := range map[string]time.Duration{
		"7d": 168 * time.Hour, "1d": 24 * time.Hour, "32767d": 32767 * 24 * time.Hour, "168h": 168 * time.Hour, "1h30m": 90 * time.Minute,
		"0d": 0, "-1d": 0, "d": 0, "1.5d": 0, "1d12h": 0, "32768d": 0, "99999999999999999999d": 0, "0s": 0, "-1s": 0, "": 0, "7": 0, "7 d": 0, "7D": 0,
	} {
		got, err := parseDuration(text)
		if (err == nil) != (want > 0) || (err == nil && got != want) {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 1, "17B": 17, "3KiB": 3 << 10, "32MiB": 32 << 20, "2GiB": 2 << 30,
		"0": 0, "-1": 0, "": 0, "MiB": 0, "1.5MiB": 0, "1MB": 0, "9999999999GiB": 0, "99999999999999999999": 0,
	} {
		got, err := parseSize(text)
		if (err == nil) != (want > 0) || (err == nil && got != want) {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestOperands(t *testing.T) {
	t.Parallel()
	got, err := load(named("warehouse create"), []string{
		"--location", "file:///w", "lake", "--property", "a=b=c", "--property", "d=",
	}, []string{"MOORAGE_ALLOW_LOCATION=file:///elsewhere", "MOORAGE_LOCATION=file:///no"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Operand != "lake" || got.Location != "file:///w" || got.Properties["a"] != "b=c" || got.AllowLocations != nil {
		t.Errorf("got %+v", got)
	}
	for _, args := range [][]string{{}, {"a", "b", "--location=file:///w"}, {"a"}, {"a", "--location=file:///w", "--property=x"}} {
		if _, err := load(named("warehouse create"), args, nil); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// It is a fault if the address of a key has an option that its service does not know. A former key
// without a present one is a fault too.
func TestSettingsOfKeys(t *testing.T) {
	t.Parallel()
	const inAWS = "aws-kms://arn:aws:kms:eu-west-1:111122223333:key/1"
	for _, row := range []struct {
		cmd  command
		args []string
		want []string
	}{
		{named("serve"), []string{"--former-secrets-key", "/keys"}, []string{"--former-secrets-key: goes with --secrets-key, which is missing"}},
		{named("serve"), []string{"--secrets-key", inAWS + "?ca=/ca"},
			[]string{"--secrets-key: " + inAWS + " has the option ca, which must be one of endpoint, once, with a value"}},
		{named("doctor"), []string{"--secrets-key", "hcvault://v:8200/transit/keys/k?endpoint=https://kms"}, []string{"--secrets-key: " +
			"hcvault://v:8200/transit/keys/k has the option endpoint, which must be one of ca and token-file, once, with a value"}},
		{named("serve"), []string{"--secrets-key", "/keys", "--former-secrets-key", inAWS + "?endpoint=https://kms"}, nil},
		{named("serve"), []string{"--secrets-key", "hcvault://v:8200/transit/keys/k?token-file=/t&ca=/ca"}, nil},
	} {
		_, err := load(row.cmd, row.args, nil)
		var usage *usageError
		if row.want == nil && err != nil || row.want != nil && (!errors.As(err, &usage) || !slices.Equal(usage.faults, row.want)) {
			t.Errorf("%s %q: got %v, want %q", row.cmd.name, row.args, err, row.want)
		}
	}
}

// A setting for a folder refuses a URI, which would become a folder of that name.
func TestURIsThatAreNoFolders(t *testing.T) {
	t.Parallel()
	const noFolder, noStore = "must be a folder of this machine, not a URI", "must be memory, a folder of this machine, or begin with postgres://"
	for _, row := range []struct {
		cmd  command
		args []string
		want string
	}{
		{named("serve"), []string{"--data", "s3://bucket/moorage"}, "--data: " + noFolder},
		{named("serve"), []string{"--data=file:///srv/moorage"}, "--data: " + noFolder},
		{named("serve"), []string{"--backups", "s3://bucket/backups"}, "--backups: " + noFolder},
		{named("serve"), []string{"--store", "mysql://root:secret@db/moorage"}, "--store: " + noStore},
		{named("serve"), []string{"--store", "file:///srv/store"}, "--store: " + noStore},
		{named("serve"), []string{"--store", "sqlite://x", "--migrate"}, "--store: " + noStore},
		{named("migrate"), []string{"--store", "jdbc:postgresql://db/moorage"}, "--store: " + noStore},
		{named("doctor"), []string{"--store", ""}, "--store: must not be empty"},
	} {
		_, err := load(row.cmd, row.args, nil)
		var usage *usageError
		if !errors.As(err, &usage) || !slices.Equal(usage.faults, []string{row.want}) {
			t.Errorf("%s %q: got %v, want %q", row.cmd.name, row.args, err, row.want)
		}
	}
	for _, store := range []string{"memory", "./s3:", "/srv/store", "postgres://db/moorage", "postgresql://db/moorage"} {
		if got := mustLoad(t, []string{"--store", store}, nil); got.Store != store {
			t.Errorf("--store %s: got %q", store, got.Store)
		}
	}
}

// If a value is not a location, the message shows what a location looks like.
func TestMalformedLocations(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"srv/lake", "gs:/lake", "gs:///lake", "abc://bucket/lake", "s3:/lake", "",
		"abfss://account.dfs.core.windows.net/lake", "abfss://c-1@account/lake", "wasb://c-1@account.blob.core.windows.net/a//b"} {
		_, err := load(named("serve"), []string{"--default-location", uri}, nil)
		var usage *usageError
		if !errors.As(err, &usage) || len(usage.faults) != 1 || !strings.HasSuffix(usage.faults[0], "; give one such as file:///srv/lake, s3://bucket/lake, gs://bucket/lake or abfss://container@account.dfs.core.windows.net/lake") {
			t.Errorf("%q: got %v, want one fault with examples", uri, err)
		}
	}
}

// One mistake is reported as one fault, even if it makes another argument look missing or
// superfluous.
func TestOneFaultForOneMistake(t *testing.T) {
	t.Parallel()
	const uri = "http://127.0.0.1:8181"
	for _, row := range []struct {
		cmd  command
		args []string
		want []string
	}{
		{named("warehouse create"), []string{"lake", "--locaton", "file:///w"}, []string{"there is no flag --locaton"}},
		{named("warehouse create"), []string{"--locaton", "file:///w", "lake"}, []string{"there is no flag --locaton"}},
		{named("warehouse create"), []string{"lake", "--locaton=file:///w"}, []string{"there is no flag --locaton"}},
		{named("warehouse create"), []string{"--name", "lake", "--location", "file:///w"}, []string{"there is no flag --name"}},
		{named("warehouse create"), []string{"--name=lake", "--location", "file:///w"}, []string{"there is no flag --name"}},
		{named("warehouse create"), []string{"--verbose", "lake", "--location", "file:///w"}, []string{"there is no flag --verbose"}},
		{named("warehouse create"), []string{"lake", "--location"}, []string{"--location: needs a value"}},
		{named("warehouse create"), []string{"lake", "--location="}, []string{`--location: storage: malformed location: ""`}},
		{named("warehouse create"), []string{"lake", "sea", "--location", "file:///w"}, []string{"warehouse create takes exactly one NAME, not 2"}},
		{named("warehouse create"), []string{"--location", "file:///w"}, []string{"warehouse create takes exactly one NAME, not 0"}},
		{named("warehouse create"), []string{"lake"}, []string{"--location is required"}},
		{named("warehouse create"), nil, []string{"warehouse create takes exactly one NAME, not 0", "--location is required"}},
		{named("warehouse create"), []string{"lake", "sea", "--locaton", "file:///w"}, []string{"there is no flag --locaton", "warehouse create takes exactly one NAME, not 2"}},
		{named("warehouse create"), []string{"lake", "--locaton", "file:///w", "--property", "x"}, []string{"there is no flag --locaton", `--property: "x" is not KEY=VALUE`}},
		{named("migrate"), []string{"--stor", "postgres://db/moorage"}, []string{"there is no flag --stor"}},
		{named("serve"), []string{"--migrate", "--store"}, []string{"--store: needs a value"}},
		{named("backup"), []string{"--uri", uri}, []string{"backup takes exactly one DIR, not 0"}},
	} {
		_, err := load(row.cmd, row.args, nil)
		var usage *usageError
		if !errors.As(err, &usage) || !slices.EqualFunc(usage.faults, row.want, strings.HasPrefix) {
			t.Errorf("%s %q: got %v, want %q", row.cmd.name, row.args, err, row.want)
		}
	}
}

// A program that cannot be run is a fault of the command line. It is found before the command takes
// a lease or claims work.
func TestProgramsAreLookedFor(t *testing.T) {
	t.Parallel()
	plain := writeFile(t, "plain", "#!/bin/sh\n")
	lease := []string{"--uri", "http://127.0.0.1:8181", "--namespace", "a", "--table", "t"}
	for program, want := range map[string]string{
		"./no-such-program": "no such file", plain: "permission denied", "no-such-program": "not found in $PATH", "": "not found",
	} {
		for _, row := range []struct {
			cmd  command
			args []string
		}{{named("maintain work"), lease[:2]}, {named("lease run"), lease}} {
			_, err := load(row.cmd, append(slices.Clone(row.args), "--exec", program), nil)
			var usage *usageError
			if !errors.As(err, &usage) || len(usage.faults) != 1 || !strings.HasPrefix(usage.faults[0], "--exec: ") ||
				!strings.Contains(usage.faults[0], want) {
				t.Errorf("%s --exec %q: got %v, want one fault: %s", row.cmd.name, program, err, want)
			}
		}
	}
	got, err := load(named("lease run"), append(slices.Clone(lease), "--exec", "sh"), nil)
	if err != nil || filepath.Base(got.Lease.Exec) != "sh" || !filepath.IsAbs(got.Lease.Exec) {
		t.Errorf("the program is %q, %v", got.Lease.Exec, err)
	}
}

// MOORAGE_URI gives the server's address, unless a flag gives one or names a store.
func TestAddressFromTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, "http://moorage:8181"},
		{[]string{"--uri", "http://127.0.0.1:1"}, "http://127.0.0.1:1"},
		{[]string{"--data", "/d"}, ""},
		{[]string{"--store", "/s"}, ""},
		{[]string{"--data", "/d", "--uri", "http://127.0.0.1:1"}, "http://127.0.0.1:1"},
	} {
		got, err := load(named("doctor"), row.args, []string{"MOORAGE_URI=http://moorage:8181/"})
		if err != nil || got.URI != row.want {
			t.Errorf("%q: %q, %v, want %q", row.args, got.URI, err, row.want)
		}
	}
}

func mustLoad(t *testing.T, args, environ []string) Config {
	t.Helper()
	got, err := load(named("serve"), args, environ)
	if err != nil {
		t.Fatalf("%q %q: %v", args, environ, err)
	}
	return got
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FuzzConfigFile tries arbitrary configuration files. Each is either read, or refused with a fault
// that names the file.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{
		"listen: 127.0.0.1:1\nallow-location:\n- file:///a\n", "data: &a x\nstore: *a\n", "? [a]\n: b\n", "---\n...\n---\n", "<<: {data: x}\n", "\x00", "a: !!binary x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		file := writeFile(t, "c.yaml", content)
		faults := &usageError{}
		for name, value := range parseFile(file, faults) {
			if len(value.values) == 0 && name != "allow-location" {
				t.Errorf("%s has no value", name)
			}
		}
		for _, fault := range faults.faults {
			if !strings.HasPrefix(fault, file) {
				t.Errorf("fault %q does not name the file", fault)
			}
		}
	})
}

func TestLifetimeSetting(t *testing.T) {
	t.Parallel()
	if got := mustLoad(t, nil, nil).IdempotencyLifetime; got != 30*time.Minute {
		t.Errorf("by default %s", got)
	}
	for value, want := range map[string]time.Duration{
		"1s": time.Second, "90m": 90 * time.Minute, "1500ms": 2 * time.Second, "8760h": 365 * 24 * time.Hour,
		"999ms": 0, "0s": 0, "-1m": 0, "8761h": 0, "30": 0, "PT30M": 0,
	} {
		c, err := load(named("serve"), []string{"--idempotency-lifetime=" + value}, nil)
		if (err != nil) != (want == 0) || err == nil && c.IdempotencyLifetime != want {
			t.Errorf("%s is %s, %v; want %s", value, c.IdempotencyLifetime, err, want)
		}
	}
}

// Changes are kept as long as the setting says, but never shorter than idempotency keys are valid.
func TestChangeRetentionSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want time.Duration // 0: refused
	}{
		{[]string{"--change-retention=36h"}, 36 * time.Hour},
		{[]string{"--change-retention=14d"}, 14 * 24 * time.Hour},
		{[]string{"--change-retention=35m"}, 35 * time.Minute},
		{[]string{"--change-retention=34m"}, 0},
		{[]string{"--change-retention=6m", "--idempotency-lifetime=1m"}, 6 * time.Minute},
		{[]string{"--change-retention=0s"}, 0},
	} {
		c, err := load(named("serve"), tt.args, nil)
		if (err != nil) != (tt.want == 0) || err == nil && c.ChangeRetention != tt.want {
			t.Errorf("%q is %s, %v; want %s", tt.args, c.ChangeRetention, err, tt.want)
		}
	}
	if got := mustLoad(t, nil, nil).ChangeRetention; got != 0 {
		t.Errorf("by default %s", got)
	}
}

func TestIdentitySettings(t *testing.T) {
	t.Parallel()
	const corp = "corp=https://idp.example,audience=moorage"
	got := mustLoad(t, []string{"--keys", "--issuer", corp, "--issuer", "k8s=https://kubernetes.default.svc,audience=moorage",
		"--admin", "corp:1", "--admin", "key:root", "--trusted-proxy", "10.1.2.3/8", "--token-lifetime", "5s"}, nil)
	if !got.APIKeys || len(got.Issuers) != 2 || got.Issuers[1].Alias != "k8s" || len(got.Admins) != 2 ||
		got.TrustedProxies[0].String() != "10.0.0.0/8" || got.TokenLifetime != 5*time.Second || !got.Authenticates() || got.HostNames() != nil {
		t.Errorf("got %+v", got)
	}
	if got := mustLoad(t, nil, nil); got.Authenticates() || got.TokenLifetime != time.Hour || got.HostNames() == nil {
		t.Errorf("by default: %+v", got)
	}
	for _, bad := range [][]string{
		{"--issuer", "corp"}, {"--issuer", "key=https://idp.example,audience=a"}, {"--issuer", corp, "--issuer", corp},
		{"--admin", "key:root"}, {"--keys", "--admin", "root"}, {"--keys", "--admin", "corp:1"}, {"--keys", "--admin", ":1"},
		{"--trusted-proxy", "proxy"}, {"--trusted-proxy", "0.0.0.0/0"}, {"--trusted-proxy", "::/0"}, {"--token-lifetime", "13h"}, {"--token-lifetime", "0s"},
		{"--tls-cert", "a"}, {"--tls-key", "a"}, {"--tls-client-ca", "a"},
	} {
		if got, err := load(named("serve"), bad, nil); err == nil {
			t.Errorf("%v was read as %+v", bad, got)
		}
	}
}

// A port without a host means an address that only this machine can reach.
func TestDebugListen(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"9181": "127.0.0.1:9181", ":9181": "127.0.0.1:9181", "0.0.0.0:9181": "0.0.0.0:9181", "[::1]:0": "[::1]:0",
		"localhost:1": "localhost:1", "": "", "x": "", "70000": "", "::1": "",
	} {
		c, err := load(named("serve"), []string{"--debug-listen", given}, nil)
		if (err == nil) != (want != "") || want != "" && c.DebugListen != want {
			t.Errorf("--debug-listen %q: %q, error %v", given, c.DebugListen, err)
		}
	}
}

// A switch can have a value, and the value false turns it off.
func TestSwitches(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands() {
		for _, s := range cmd.settings {
			if s.value != "" {
				continue
			}
			for value, want := range map[string]struct{ changes, fails bool }{
				"true": {changes: true}, "false": {}, "perhaps": {fails: true},
			} {
				var c Config
				err := s.set(&c, []string{value})
				if changes := !reflect.DeepEqual(c, Config{}); changes != want.changes || (err != nil) != want.fails {
					t.Errorf("%s --%s=%s: changes the settings: %v, error: %v", cmd.name, s.name, value, changes, err)
				}
			}
		}
	}
	for line, want := range map[string]bool{"-v": true, "-v=true": true, "-v=false": false, "--verbose=false": false} {
		c, err := load(named("maintain run"), []string{"snapshots", "w.a.t", line}, nil)
		if err != nil || c.Maintain.Verbose != want {
			t.Errorf("%s: %v, %v", line, c.Maintain.Verbose, err)
		}
	}
}
