package s3

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// The options of a storage.Place that this package knows. Clients also get the first three options,
// under the same names.
const (
	// OptionEndpoint is Options.Endpoint.
	OptionEndpoint = "s3.endpoint"
	// OptionRegion is Options.Region.
	OptionRegion = "s3.region"
	// OptionPathStyle is true or false, for AddressPath or AddressHost.
	OptionPathStyle = "s3.path-style-access"
	// OptionProfile is Options.Profile. Static credentials are not options, because all callers can
	// read stored options.
	OptionProfile = "s3.profile"

	// OptionRoleARN is Vending.RoleARN. The following options are other fields of Vending.
	OptionRoleARN    = "s3.sts.role-arn"
	OptionSTS        = "s3.sts.endpoint"
	OptionExternalID = "s3.sts.external-id"
	OptionDuration   = "s3.sts.duration"
	OptionKMSKeyARN  = "s3.kms.key-arn"
	OptionPartition  = "s3.partition"
	OptionDialect    = "s3.dialect"
	// OptionProtectMetadata is true or false, the opposite of Vending.OpenMetadata.
	OptionProtectMetadata = "s3.protect-metadata"
)

// optionClientRegion is another name that clients use for the region.
const optionClientRegion = "client.region"

// With returns o with the options of a place. An unknown option or an invalid value is an error,
// because a misspelled endpoint must not lead to another server.
func (o Options) With(place map[string]string) (Options, error) {
	for _, name := range slices.Sorted(maps.Keys(place)) {
		value := place[name]
		switch name {
		case OptionEndpoint:
			o.Endpoint = value
			if err := CheckEndpoint(value); err != nil {
				return o, fmt.Errorf("s3: the option %s: %w", name, err)
			}
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
			// The profile has its own keys. The process's own keys must not be used for this place.
			o.Profile, o.AccessKeyID, o.SecretAccessKey = value, "", ""
		default:
			known, err := o.Vending.set(name, value)
			if err != nil {
				return o, err
			}
			if !known {
				return o, fmt.Errorf("s3: unknown option %s", name)
			}
		}
	}
	return o, nil
}

// The members of a secret.
const (
	SecretAccessKeyID = "access-key-id"
	SecretAccessKey   = "secret-access-key"
)

// WithSecret returns o with the access key of a secret instead of the process's credentials. Errors
// contain no part of the secret.
func (o Options) WithSecret(secret map[string]string) (Options, error) {
	id, key := secret[SecretAccessKeyID], secret[SecretAccessKey]
	if len(secret) != 2 || id == "" || key == "" {
		return o, fmt.Errorf("s3: a secret has the members %s and %s, and no other", SecretAccessKeyID, SecretAccessKey)
	}
	o.AccessKeyID, o.SecretAccessKey, o.Profile = id, key, ""
	return o, nil
}

// Forms of the options that are used unescaped in requests and policies.
var (
	rolePattern       = regexp.MustCompile(`^arn:[a-z0-9-]+:iam::[0-9]*:role/[\w+=,.@/-]{1,512}$`)
	keyPattern        = regexp.MustCompile(`^arn:[a-z0-9-]+:kms:[a-z0-9-]*:[0-9]*:key/[A-Za-z0-9-]{1,128}$`)
	partitionPattern  = regexp.MustCompile(`^aws[a-z-]{0,20}$`)
	externalIDPattern = regexp.MustCompile(`^[\w+=,.@:/-]+$`)
)

// set sets the field for an option, and reports whether the option is known.
func (v *Vending) set(name, value string) (known bool, err error) {
	matching := func(field *string, pattern *regexp.Regexp, what string) {
		*field = value
		if !pattern.MatchString(value) {
			err = fmt.Errorf("s3: the option %s is %s, not %q", name, what, value)
		}
	}
	switch name {
	case OptionRoleARN:
		matching(&v.RoleARN, rolePattern, "the ARN of a role")
	case OptionKMSKeyARN:
		matching(&v.KMSKeyARN, keyPattern, "the ARN of a KMS key")
	case OptionPartition:
		matching(&v.Partition, partitionPattern, "aws, aws-cn or the like")
	case OptionExternalID:
		matching(&v.ExternalID, externalIDPattern, "letters, digits and +=,.@:/-")
	case OptionSTS:
		v.Endpoint = value
		if err = CheckEndpoint(value); err != nil {
			err = fmt.Errorf("s3: the option %s: %w", name, err)
		}
	case OptionDuration:
		v.Duration, err = time.ParseDuration(value)
		if err != nil || v.Duration < vendDurationMin || v.Duration > vendDurationMax {
			err = fmt.Errorf("s3: the option %s is a duration from 15m to 12h, not %q", name, value)
		}
	case OptionDialect:
		v.Dialect = Dialect(value)
		if !slices.Contains([]Dialect{DialectAWS, DialectMinIO, DialectOther}, v.Dialect) {
			err = fmt.Errorf("s3: the option %s is aws, minio or other, not %q", name, value)
		}
	case OptionProtectMetadata:
		protect, parseErr := strconv.ParseBool(value)
		v.OpenMetadata = !protect
		if parseErr != nil {
			err = fmt.Errorf("s3: the option %s is true or false, not %q", name, value)
		}
	default:
		return false, nil
	}
	return true, err
}

// CheckEndpoint returns an error if the URL of a server is not valid.
func CheckEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil ||
		parsed.RawQuery != "" {
		return fmt.Errorf("%q is not the address of a server, such as http://127.0.0.1:9000", endpoint)
	}
	return nil
}
