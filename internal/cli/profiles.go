package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const profileText = `
Profiles are in the file moorage/profiles.yaml in $XDG_CONFIG_HOME, or in ~/.config. Only the owner
may read it. A flag or a variable such as MOORAGE_URI overrides the profile in use, and the flag
--profile overrides variables. The credential of a profile is only sent to the uri of the same
profile.
`

// profile describes how a command reaches one server.
type profile struct {
	URI       string `yaml:"uri,omitempty"`
	Warehouse string `yaml:"warehouse,omitempty"`
	Token     string `yaml:"token,omitempty"`
	// TokenCommand is a shell command that prints the token.
	TokenCommand string `yaml:"token-command,omitempty"`
	CA           string `yaml:"ca,omitempty"` // PEM file with the authorities of the server
}

// profiles is the content of the file with the profiles.
type profiles struct {
	Use      string             `yaml:"use,omitempty"` // the profile of commands without --profile
	Profiles map[string]profile `yaml:"profiles"`
}

// profilesFile returns the path of the file with the profiles. It returns "" if the environment
// names no folder for it.
func profilesFile(environ []string) string {
	values := make(map[string]string)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	folder := values["XDG_CONFIG_HOME"]
	if folder == "" {
		if values["HOME"] == "" {
			return ""
		}
		folder = filepath.Join(values["HOME"], ".config")
	}
	return filepath.Join(folder, "moorage", "profiles.yaml")
}

// profileFileMode is the only permission that a file with profiles may have, because it can contain
// tokens.
const profileFileMode = 0o600

// readProfiles reads the file with the profiles. If there is no file, it returns no profiles.
func readProfiles(environ []string) (read profiles, err error) {
	read.Profiles = make(map[string]profile)
	name := profilesFile(environ)
	if name == "" {
		return read, nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return read, nil
	case err != nil:
		return read, fmt.Errorf("look for profiles: %w", err)
	case info.Mode().Perm()&^profileFileMode != 0:
		return read, fmt.Errorf("other users can read %s, which may have tokens: run chmod 600 %s", name, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return read, fmt.Errorf("read profiles: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&read); err != nil && !errors.Is(err, io.EOF) { // a file may contain only comments
		return read, fmt.Errorf("read %s: %w", name, err)
	}
	if read.Profiles == nil { // the key has no value
		read.Profiles = make(map[string]profile)
	}
	return read, nil
}

// write replaces the file with the profiles atomically.
func (p profiles) write(environ []string) error {
	name := profilesFile(environ)
	if name == "" {
		return errors.New("there is no place for profiles: neither XDG_CONFIG_HOME nor HOME is set")
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return fmt.Errorf("write profiles: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("make the folder of profiles: %w", err)
	}
	next, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // only its owner can read it
	if err != nil {
		return fmt.Errorf("write profiles: %w", err)
	}
	_, err = next.Write(text)
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write profiles: %w", err), os.Remove(next.Name()))
	}
	return nil
}

// named returns the profile called name. If there is none, the error lists the existing profiles.
func (p profiles) named(name string) (profile, error) {
	found, ok := p.Profiles[name]
	if !ok {
		there := slices.Sorted(maps.Keys(p.Profiles))
		if len(there) == 0 {
			return found, fmt.Errorf("there is no profile %q, nor any other: make one with moorage profile set", name)
		}
		return found, fmt.Errorf("there is no profile %q; there are %s%s", name, strings.Join(there, ", "),
			didYouMean("", name, there))
	}
	return found, nil
}

// connect fills in the settings of a command for people: the server, the credentials and the
// warehouse. Flags and variables win over the profile in use, and the flag --profile over
// variables. If isCompleting is true, a user waits at the prompt.
func connect(c *Config, environ []string, isCompleting bool, faults *usageError) {
	if c.URI != "" || c.Data != "" || c.Store != "" {
		if c.URI == "" && c.Data == "" {
			c.Data = dataPreset
		}
		if c.People.Profile == "" {
			return
		}
	}
	read, err := readProfiles(environ)
	if err != nil {
		faults.addf("%s", err)
		return
	}
	name := c.People.Profile
	if name == "" {
		name = read.Use
	}
	var used profile
	if name != "" {
		if used, err = read.named(name); err != nil {
			faults.addf("--profile: %s", err)
			return
		}
	}
	// wins reports whether the value of the profile replaces the value of the flag or the variable.
	wins := func(value, flag string, isSet bool) bool {
		return value != "" && (!isSet || c.IsGiven("profile") && !c.IsGiven(flag))
	}
	ownURI := cmp.Or(strings.TrimSuffix(used.URI, "/"), DefaultURI)
	if c.Data == "" && (c.URI == "" || wins(used.URI, "uri", true)) {
		c.URI = ownURI
	}
	if wins(used.Warehouse, "warehouse", c.People.Warehouse != "") {
		c.People.Warehouse = used.Warehouse
	}
	if wins(used.CA, "ca", c.Authorities != nil) {
		if err := authority().set(c, []string{used.CA}); err != nil {
			faults.addf("profile %s: %s", name, err)
		}
	}
	if c.URI == ownURI && wins(used.Token+used.TokenCommand, "token", c.Token != "") {
		c.Token, err = used.token(isCompleting)
		if err != nil {
			faults.addf("profile %s: %s", name, err)
		}
	}
}

// tokenTimeout is the timeout of the command that prints a token. The command may ask its user for
// input.
const tokenTimeout = 2 * time.Minute

// token returns the token of a profile, or "" if the profile has none. If isCompleting is true, the
// command that prints the token must be fast, and cannot ask its user.
func (p profile) token(isCompleting bool) (string, error) {
	if p.Token != "" || p.TokenCommand == "" {
		return p.Token, nil
	}
	timeout, delay, stdin := tokenTimeout, time.Duration(0), io.Reader(os.Stdin)
	if isCompleting {
		// Programs that the shell started may outlive it. This function does not wait for their
		// output.
		delay = completeTimeout / 3
		timeout, stdin = completeTimeout-delay, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", p.TokenCommand)
	command.Stdin, command.WaitDelay = stdin, delay
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("the token-command failed: %w", err)
	}
	return strings.TrimSpace(string(printed)), nil
}

// fields returns the settings of a profile by name.
func (p *profile) fields() map[string]*string {
	return map[string]*string{
		"uri": &p.URI, "warehouse": &p.Warehouse, "token": &p.Token, "token-command": &p.TokenCommand, "ca": &p.CA,
	}
}

func listProfiles(_ context.Context, _ Config, env Environment) error {
	read, err := readProfiles(env.Environ)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(read.Profiles)) {
		mark, of := " ", read.Profiles[name]
		if name == read.Use {
			mark = "*"
		}
		fmt.Fprintf(env.Stdout, "%s %s  %s  %s  %s\n", mark, name, of.URI, of.Warehouse, of.credential())
	}
	return nil
}

// credential returns the kind of credential in a profile.
func (p profile) credential() string {
	switch {
	case p.Token != "":
		return "token"
	case p.TokenCommand != "":
		return "token-command"
	}
	return "none"
}

func useProfile(_ context.Context, c Config, env Environment) error {
	read, err := readProfiles(env.Environ)
	if err != nil {
		return err
	}
	if _, err := read.named(c.People.Profile); err != nil {
		return No("%s", err)
	}
	read.Use = c.People.Profile
	return read.write(env.Environ)
}

func setProfile(_ context.Context, c Config, env Environment) error {
	read, err := readProfiles(env.Environ)
	if err != nil {
		return err
	}
	changed := read.Profiles[c.People.Profile]
	fields := changed.fields()
	for name, value := range c.People.Pairs {
		field, ok := fields[name]
		if !ok {
			there := slices.Sorted(maps.Keys(fields))
			return fmt.Errorf("a profile has no %q%s; it has %s", name, didYouMean("", name, there),
				strings.Join(there, ", "))
		}
		*field = value
	}
	read.Profiles[c.People.Profile] = changed
	if read.Use == "" {
		read.Use = c.People.Profile
	}
	return read.write(env.Environ)
}

func removeProfile(_ context.Context, c Config, env Environment) error {
	read, err := readProfiles(env.Environ)
	if err != nil {
		return err
	}
	if _, err := read.named(c.People.Profile); err != nil {
		return No("%s", err)
	}
	delete(read.Profiles, c.People.Profile)
	if read.Use == c.People.Profile {
		read.Use = ""
	}
	return read.write(env.Environ)
}

func showProfile(_ context.Context, c Config, env Environment) error {
	read, err := readProfiles(env.Environ)
	if err != nil {
		return err
	}
	found, err := read.named(c.People.Profile)
	if err != nil {
		return No("%s", err)
	}
	for _, name := range []string{"uri", "warehouse", "token-command", "ca"} {
		if value := *found.fields()[name]; value != "" {
			fmt.Fprintf(env.Stdout, "%-14s %s\n", name, value)
		}
	}
	if found.Token != "" {
		fmt.Fprintf(env.Stdout, "%-14s %s\n", "token", "set")
	}
	return nil
}
