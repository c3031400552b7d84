package s3

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// The options of a storage.Place that this package knows. Clients get the first three as well, by
// the same names.
const (
	// OptionEndpoint is Options.Endpoint.
	OptionEndpoint = "s3.endpoint"
	// OptionRegion is Options.Region.
	OptionRegion = "s3.region"
	// OptionPathStyle is true or false, for AddressPath or AddressHost.
	OptionPathStyle = "s3.path-style-access"
	// OptionProfile is Options.Profile. Static credentials are not options, because everybody can
	// read stored options.
	OptionProfile = "s3.profile"
)

// optionClientRegion is another name that clients have for the region.
const optionClientRegion = "client.region"

// With returns o with the options of a place in place of its own. An option that is not known, or
// has an invalid value, is an error: a misspelled endpoint must not lead to another server.
func (o Options) With(place map[string]string) (Options, error) {
	for _, name := range slices.Sorted(maps.Keys(place)) {
		value := place[name]
		switch name {
		case OptionEndpoint:
			o.Endpoint = value
		case OptionRegion:
			o.Region = value
		case OptionPathStyle:
			pathStyle, err := strconv.ParseBool(value)
			if err != nil {
				return o, fmt.Errorf("s3: the option %s is true or false, not %q", name, value)
			}
			o.Addressing = AddressHost
			if pathStyle {
				o.Addressing = AddressPath
			}
		case OptionProfile:
			// The profile has keys of its own. The keys of the process are for other places.
			o.Profile, o.AccessKeyID, o.SecretAccessKey = value, "", ""
		default:
			return o, fmt.Errorf("s3: unknown option %s", name)
		}
	}
	return o, nil
}

// CheckEndpoint returns an error that says what is wrong with the URL of a server, or nil.
func CheckEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil ||
		parsed.RawQuery != "" {
		return fmt.Errorf("%q is not the address of a server, such as http://127.0.0.1:9000", endpoint)
	}
	return nil
}
