package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"moorage/internal/cli"
	"moorage/storage"
)

// settingsOf returns the settings that moorage has with these arguments and variables. It reports
// each setting that does not exist or has no valid value.
func settingsOf(t *testing.T, args []string, environment map[string]string) (settings cli.Config) {
	t.Helper()
	known, err := os.ReadFile("../../docs/reference/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var environ []string
	for name, value := range environment {
		if strings.HasPrefix(name, "MOORAGE_") && !strings.Contains(string(known), "`"+name+"`") {
			t.Errorf("there is no variable %s", name)
		}
		environ = append(environ, name+"="+value)
	}
	var stderr strings.Builder
	keep := func(_ context.Context, c cli.Config, _ cli.Environment) error {
		settings = c
		return nil
	}
	env := cli.Environment{Environ: environ, Stdout: &stderr, Stderr: &stderr}
	if code := cli.Run(t.Context(), args, env, map[string]cli.Action{args[0]: keep}); code != cli.ExitDone {
		t.Fatalf("moorage %q: exit %d\n%s", args, code, stderr.String())
	}
	return settings
}

// TestCompose checks that the file starts the server with valid settings, with the other services,
// and on a port that only this machine reaches. Engines use the lines that moorage connect prints.
func TestCompose(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image, Build string
			Command      []string
			Environment  map[string]string
			Ports        []string
			Profiles     []string
			DependsOn    map[string]struct{ Condition string } `yaml:"depends_on"`
			Configs      []struct{ Source string }
		}
		Volumes map[string]any
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for name, service := range file.Services {
		if _, tag, _ := strings.Cut(service.Image, ":"); tag == "" || tag == "latest" {
			t.Errorf("%s: the image %q is not pinned", name, service.Image)
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to other machines", name, port)
			}
		}
		for other := range service.DependsOn {
			if file.Services[other].Image == "" {
				t.Errorf("%s depends on %s, which does not exist", name, other)
			}
		}
		for _, config := range service.Configs {
			if file.Configs[config.Source].Content == "" {
				t.Errorf("%s: there is no configuration %s", name, config.Source)
			}
		}
	}
	server := file.Services["moorage"]
	if server.Image != "moorage:"+release {
		t.Errorf("the image is %s, and this is %s", server.Image, release)
	}
	got := settingsOf(t, server.Command, server.Environment)
	if !strings.Contains(got.Store, "@postgres:5432/") || !got.InDatabase() || !got.Migrate {
		t.Errorf("the store is %s", got.Store)
	}
	if endpoint := got.DefaultStorageOptions["s3.endpoint"]; endpoint != "http://storage:8333" {
		t.Errorf("the storage is %s", endpoint)
	}
	to := connection{
		uri: "http://moorage:8181", warehouse: defaultWarehouse, as: catalogName, scheme: storage.SchemeS3,
		config: got.DefaultStorageOptions,
	}
	id, secret := server.Environment["AWS_ACCESS_KEY_ID"], server.Environment["AWS_SECRET_ACCESS_KEY"]
	trino := strings.Join(to.trino(), "\n") + "\n"
	trino = strings.ReplaceAll(trino, "s3.aws-access-key=…", "s3.aws-access-key="+id)
	trino = strings.ReplaceAll(trino, "s3.aws-secret-key=…", "s3.aws-secret-key="+secret)
	if got := file.Configs["trino"].Content; got != trino {
		t.Errorf("Trino gets\n%swant\n%s", got, trino)
	}
	spark := strings.Join(file.Services["spark"].Command, " ")
	for _, word := range strings.Fields(strings.Join(to.spark(), " "))[1:] {
		if word != `\` && !strings.Contains(spark, word) {
			t.Errorf("Spark does not get %s", word)
		}
	}
	for engine, service := range file.Services {
		if optional := slices.Contains([]string{"trino", "spark"}, engine); optional != slices.Equal(service.Profiles, []string{engine}) {
			t.Errorf("%s has the profiles %q", engine, service.Profiles)
		}
	}
}

// manifest has the parts of a Kubernetes manifest that these tests check.
type manifest struct {
	Kind string
	Data map[string]string
	Spec struct {
		Replicas int
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
				AutomountServiceAccountToken  bool        `yaml:"automountServiceAccountToken"`
				InitContainers                []container `yaml:"initContainers"`
				Containers                    []container
				Volumes                       []struct {
					Name   string
					Secret *struct {
						DefaultMode int `yaml:"defaultMode"`
					}
				}
			}
		}
	}
}

type container struct {
	Image, Name string
	Args        []string
	Env         []struct{ Name, Value string }
	Ports       []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	LivenessProbe struct {
		HTTPGet struct{ Path, Scheme string } `yaml:"httpGet"`
	} `yaml:"livenessProbe"`
	SecurityContext struct {
		ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
	} `yaml:"securityContext"`
}

// TestChart checks the output of the chart for each file of values. It must start a server with
// valid settings that fit the other objects of the chart. interop/box/chart.py compares these files
// with Helm.
func TestChart(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/helm/golden/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			byKind := make(map[string]manifest)
			for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
				var m manifest
				if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				byKind[m.Kind] = m
			}
			of, overDatabase := byKind["Deployment"]
			if !overDatabase {
				of = byKind["StatefulSet"]
			}
			if _, protected := byKind["PodDisruptionBudget"]; protected && !overDatabase || of.Spec.Replicas > 1 && !overDatabase {
				t.Errorf("an embedded store has %d pods", of.Spec.Replicas)
			}
			pod := of.Spec.Template.Spec
			if len(pod.Containers) != 1 || overDatabase != (len(pod.InitContainers) == 1) {
				t.Fatalf("the pod has %d containers", len(pod.Containers))
			}
			server := pod.Containers[0]
			settings := filepath.Join(t.TempDir(), "moorage.yaml")
			if err := os.WriteFile(settings, []byte(byKind["ConfigMap"].Data["moorage.yaml"]), 0o600); err != nil {
				t.Fatal(err)
			}
			environment := make(map[string]string)
			for _, variable := range server.Env {
				if environment[variable.Name] = variable.Value; variable.Name == "MOORAGE_STORE" {
					environment[variable.Name] = "postgres://moorage@database/moorage" // from a secret
				}
			}
			args := slices.Clone(server.Args)
			if at := slices.Index(args, "--config"); at < 0 || args[at+1] != "/etc/moorage/moorage.yaml" {
				t.Fatalf("the server is started with %q", args)
			} else {
				args[at+1] = settings
			}
			got := settingsOf(t, args, environment)
			if got.InDatabase() != overDatabase || got.Data != "/data" {
				t.Errorf("the store is %s in %s", got.StoreName(), got.Data)
			}
			if grace := float64(pod.TerminationGracePeriodSeconds); grace <= got.ShutdownTimeout.Seconds() {
				t.Errorf("the pod has %g s to stop, and the server takes %s", grace, got.ShutdownTimeout)
			}
			probe := server.LivenessProbe.HTTPGet
			if probe.Path != "/healthz" || (probe.Scheme == "HTTPS") != (got.TLSCert != "") {
				t.Errorf("the liveness probe asks %s by %s", probe.Path, probe.Scheme)
			}
			if _, monitored := byKind["ServiceMonitor"]; monitored != (got.DebugListen != "") || monitored != (len(server.Ports) == 2) {
				t.Errorf("the metrics are at %q, and the ports are %v", got.DebugListen, server.Ports)
			}
			if !server.SecurityContext.ReadOnlyRootFilesystem || pod.AutomountServiceAccountToken {
				t.Errorf("the container may do more than it needs")
			}
			for _, volume := range pod.Volumes {
				// The server refuses a key file that all users can read. The server's group must be
				// able to read these files.
				if secret := volume.Secret; secret != nil && secret.DefaultMode != 0o440 {
					t.Errorf("files of %s have the mode %o", volume.Name, secret.DefaultMode)
				}
			}
			if !strings.HasSuffix(server.Image, "moorage:"+release) {
				t.Errorf("the image is %s, and this is %s", server.Image, release)
			}
		})
	}
}

// TestUnit checks that the settings in the packages are valid, and fit the unit.
func TestUnit(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/systemd/moorage.service")
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	for line := range strings.Lines(string(unit)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			values[name] = value
		}
	}
	const start = "/usr/bin/moorage serve --config /etc/moorage/moorage.yaml"
	if values["ExecStart"] != start {
		t.Errorf("the unit starts %s", values["ExecStart"])
	}
	got := settingsOf(t, []string{"serve", "--config", "../../deploy/packages/moorage.yaml"}, nil)
	if got.Data != "/var/lib/"+values["StateDirectory"] || got.Data != values["RequiresMountsFor"] {
		t.Errorf("the data is in %s, and the unit has %s", got.Data, values["StateDirectory"])
	}
	stop, err := time.ParseDuration(values["TimeoutStopSec"] + "s")
	if err != nil || stop <= got.ShutdownTimeout {
		t.Errorf("the unit gives the server %s to stop, and it takes %s", stop, got.ShutdownTimeout)
	}
	probe := strings.Fields(strings.Split(values["ExecStartPost"], "/usr/bin/moorage ")[1])
	if probe[0] != "healthcheck" || strings.TrimSuffix(probe[2], ";") != "/etc/moorage/moorage.yaml" {
		t.Errorf("the unit waits with %s", values["ExecStartPost"])
	}
}
