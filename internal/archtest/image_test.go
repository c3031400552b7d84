package archtest

import (
	"go/version"
	"regexp"
	"strings"
	"testing"
)

// imageBase finds the base images in a Dockerfile, and their tags.
var imageBase = regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`)

// TestDockerfile checks that the image consists of pinned parts, has no shell, and does not run as
// root. scripts/image.py carries out the last stage, and refuses any other instruction.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	text := string(m.read(t, "Dockerfile"))
	bases := imageBase.FindAllStringSubmatch(text, -1)
	if len(bases) != 2 || bases[1][1] != "scratch" {
		t.Fatalf("the stages begin with %q", bases)
	}
	compiler, found := strings.CutPrefix(bases[0][1], "golang:")
	required := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(m.read(t, "go.mod")))[1]
	if !found || strings.Count(compiler, ".") != 2 || version.Compare("go"+compiler, "go"+required) < 0 ||
		version.Lang("go"+compiler) != version.Lang("go"+required) {
		t.Errorf("the first stage begins with %s, and go.mod requires Go %s", bases[0][1], required)
	}
	_, last, _ := strings.Cut(text, "FROM scratch\n")
	words := make(map[string]string)
	for line := range strings.Lines(last) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words[name] += rest + "\n"
	}
	for name, want := range map[string]string{
		"USER":        "65532:65532\n",
		"VOLUME":      "[\"/data\"]\n",
		"ENTRYPOINT":  "[\"/usr/bin/moorage\"]\n",
		"ENV":         "MOORAGE_DATA=/data\n",
		"HEALTHCHECK": "--interval=10s --timeout=6s --start-period=30s CMD [\"/usr/bin/moorage\", \"healthcheck\"]\n",
	} {
		if words[name] != want {
			t.Errorf("%s is %q, want %q", name, words[name], want)
		}
	}
	for _, banned := range []string{"ADD ", ":latest", "curl ", "wget "} {
		if strings.Contains(text, banned) {
			t.Errorf("the Dockerfile has %q", banned)
		}
	}
	for line := range strings.Lines(string(m.read(t, "deploy/image/passwd"))) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) != 7 || fields[6] != "/sbin/nologin" {
			t.Errorf("deploy/image/passwd: %s", line)
		}
	}
}
