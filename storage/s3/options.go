package s3

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// The options of a storage.Place that this package knows. The first three are also what clients
// are told, by the same names.
const (
	// OptionEndpoint is Options.Endpoint.
	OptionEndpoint = "s3.endpoint"
	// OptionRegion is Options.Region.
	OptionRegion = "s3.region"
	// OptionPathStyle is true or false, for AddressPath or AddressHost.
	OptionPathStyle = "s3.path-style-access"
	// OptionProfile is Options.Profile. Static credentials are no options, because those are stored for everybody to read.
	OptionProfile = "s3.profile"
)

// optionClientRegion is another name that clients have for the region.
const optionClientRegion = "client.region"

// With returns o with what the options of a place say in place of what o says. An option that is
// not known, or has no such value, is an error: who misspells an endpoint must not reach another.
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
			// It has keys of its own; those of the process are for other places.
			o.Profile, o.AccessKeyID, o.SecretAccessKey = value, "", ""
		default:
			return o, fmt.Errorf("s3: there is no option %s", name)
		}
	}
	return o, nil
}

// CheckEndpoint says what is wrong with the URL of a server; nil if nothing is.
func CheckEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" {
		return fmt.Errorf("%q is not the address of a server, such as http://127.0.0.1:9000", endpoint)
	}
	return nil
}
