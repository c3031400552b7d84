package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage/storage"
)

// text returns the set function of a setting that takes any text that is not empty.
func text(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		*field(c) = values[0]
		return notEmpty(values[0])
	}
}

// program returns the set function of a setting that names a program. The function looks for the
// program at once. Otherwise the process would take a lease or a job before it learns that the
// program does not exist.
func program(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, values []string) (err error) {
		*field(c), err = exec.LookPath(values[0])
		if failed, ok := errors.AsType[*exec.Error](err); ok {
			return fmt.Errorf("%q cannot be run: %w", values[0], failed.Err)
		}
		return err
	}
}

func notEmpty(v string) error {
	if v == "" {
		return fmt.Errorf("must not be empty")
	}
	return nil
}

// folder is like text, but refuses a URI, because the server would create a folder of that name on
// this machine.
func folder(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		if isURI(values[0]) {
			return fmt.Errorf("must be a folder of this machine, not a URI")
		}
		return text(field)(c, values)
	}
}

func isURI(v string) bool { return strings.Contains(v, "://") }

// place returns the set function of a setting that takes the location of tables.
func place(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		*field(c) = values[0]
		return CheckLocation(values[0])
	}
}

// one returns the set function of a setting with one value, which parse reads. want describes the
// expected value.
func one[T any](parse func(string) (T, error), want string, field func(*Config) *T) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		value, err := parse(values[0])
		if err != nil {
			return fmt.Errorf("%q is not %s", values[0], want)
		}
		*field(c) = value
		return nil
	}
}

// toggle returns the set function of a switch, which is true if the user gives no value.
func toggle(field func(*Config) *bool) func(*Config, []string) error {
	return one(strconv.ParseBool, "true or false", field)
}

func oneOf(allowed ...string) func(string) (string, error) {
	return func(v string) (string, error) {
		if slices.Contains(allowed, v) {
			return v, nil
		}
		return "", strconv.ErrSyntax
	}
}

func parseLevel(v string) (level slog.Level, err error) {
	_, err = oneOf("debug", "info", "warn", "error")(v)
	if err == nil {
		err = level.UnmarshalText([]byte(v))
	}
	return level, err
}

// within returns parse with bounds: it refuses values less than least or more than most.
func within[T cmp.Ordered](parse func(string) (T, error), least, most T) func(string) (T, error) {
	return func(v string) (T, error) {
		value, err := parse(v)
		if err == nil && (value < least || value > most) {
			err = strconv.ErrRange
		}
		return value, err
	}
}

// parseDays reads a duration in the form of time.ParseDuration, or a whole number of days of 24
// hours.
func parseDays(v string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(v)
}

// parseDuration is like parseDays, for values that must be more than 0.
func parseDuration(v string) (time.Duration, error) {
	return within(parseDays, 1, math.MaxInt64)(v)
}

// lifetimeMax is the longest accepted lifetime, far longer than any client waits.
const lifetimeMax = 365 * 24 * time.Hour

// parseLifetime reads a duration that the server sends to clients in whole seconds.
func parseLifetime(v string) (time.Duration, error) {
	d, err := within(parseDays, time.Second, lifetimeMax)(v)
	return d.Round(time.Second), err
}

// parseSize reads a positive number of bytes with an optional unit.
func parseSize(v string) (int64, error) {
	units := []struct {
		suffix string
		bits   uint
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}}
	for _, unit := range units {
		digits, ok := strings.CutSuffix(v, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, err
		}
		if n < 1 || n > (1<<62)>>unit.bits {
			return 0, strconv.ErrRange
		}
		return n << unit.bits, nil
	}
	return 0, strconv.ErrSyntax
}

func checkHostPort(v string) error {
	_, port, err := net.SplitHostPort(v)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT with a port from 0 to 65535", v)
	}
	return nil
}

// locationExamples are locations for which Moorage has a storage.
const locationExamples = "file:///srv/lake, s3://bucket/lake, gs://bucket/lake or " +
	"abfss://container@account.dfs.core.windows.net/lake"

// CheckLocation returns an error if a user's location is not valid. A valid location has one of the
// schemes in locationExamples.
func CheckLocation(uri string) error {
	location, err := storage.Parse(uri)
	if err != nil {
		return fmt.Errorf("%w; give one such as %s", err, locationExamples)
	}
	switch location.Scheme {
	case storage.SchemeFile, storage.SchemeS3, storage.SchemeGCS, storage.SchemeAzure:
		return nil
	}
	return fmt.Errorf("%q: only locations on local disks, in S3, in Google Cloud Storage and in Azure are supported, "+
		"such as %s", uri, locationExamples)
}

// isEveryAddress reports whether host means all addresses of a machine. A server can listen there,
// but no client can call it.
func isEveryAddress(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

// KeyAddress is the address of the keys that seal secrets: a file, or a key in a service.
type KeyAddress struct {
	Place string // path of the file, or URI of the key without its options

	TokenFile string // for a Vault: file with its token
	CA        string // for a Vault: PEM file with the authorities for its certificate; empty means the system's
	Endpoint  string // for a cloud: URL of its service; empty means the cloud's own
}

// ParseKeyAddress reads the address of keys: a path, or a URI whose query has options.
func ParseKeyAddress(text string) (KeyAddress, error) {
	place, query, _ := strings.Cut(text, "?")
	scheme, _, isURI := strings.Cut(place, "://")
	if !isURI {
		return KeyAddress{Place: text}, nil
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return KeyAddress{}, fmt.Errorf("the options of %s: %w", place, err)
	}
	address := KeyAddress{Place: place}
	fields := map[string]*string{"endpoint": &address.Endpoint}
	if strings.HasPrefix(scheme, "hcvault") {
		fields = map[string]*string{"token-file": &address.TokenFile, "ca": &address.CA}
	}
	for name, values := range options {
		field, known := fields[name]
		if !known || len(values) != 1 || values[0] == "" {
			return KeyAddress{}, fmt.Errorf("%s has the option %s, which must be one of %s, once, with a value", place,
				name, strings.Join(slices.Sorted(maps.Keys(fields)), " and "))
		}
		*field = values[0]
	}
	return address, nil
}
