package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"moorage/storage/adls"
)

// setting is one setting of commands. Its flag is --name. Unless flagOnly is set, users can also
// set it with the environment variable MOORAGE_NAME and in the YAML file.
type setting struct {
	name  string
	short string // one letter; empty if there is none
	// value is the placeholder of the value in help; empty for a switch. Lower-case words between
	// bars are literal.
	value    string
	preset   string // default, as a user would write it; empty if there is none
	list     bool   // may be given more than once
	flagOnly bool
	required bool
	// unless is a list of flags. If one of them is given, the environment variable is ignored.
	unless []string
	usage  string
	// set parses values and stores the result in c. There is exactly one value unless list is true.
	set func(c *Config, values []string) error
}

// variable returns the name of the environment variable.
func (s setting) variable() string {
	return "MOORAGE_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// configFile returns the setting for the file with other settings.
func configFile() setting {
	return setting{name: "config", value: "FILE", set: text(func(c *Config) *string { return &c.File }),
		usage: "YAML file with settings."}
}

// dataPreset is the default of --data.
const dataPreset = "./moorage-data"

// storeSettings returns the settings for the location of the store.
func storeSettings() []setting {
	return []setting{
		configFile(),
		{name: "data", value: "DIR", preset: dataPreset, set: folder(func(c *Config) *string { return &c.Data }),
			usage: "Folder for all data of the server. serve creates it if it does not exist. The warehouse " +
				"called default is in its folder warehouse, unless that warehouse was created with " +
				"--default-location."},
		{name: "store", value: "memory|DIR|URI",
			usage: "Store for the catalog's records. It is the folder of the embedded store; or memory, whose " +
				"content is lost when the server ends; or a PostgreSQL database for several servers, " +
				"postgres://USER@HOST:PORT,HOST:PORT/DATABASE. Default: the folder registry in --data.",
			set: func(c *Config, v []string) error {
				if c.Store = v[0]; c.InDatabase() {
					return nil
				}
				if isURI(c.Store) { // the message must not contain the URL, because it may have a password
					return fmt.Errorf("must be memory, a folder of this machine, or begin with postgres://")
				}
				return notEmpty(c.Store)
			}},
	}
}

// asking returns the settings of a command that calls a server or opens the store itself. The
// command's own settings come first.
func asking(own ...setting) []setting {
	return slices.Concat(own, []setting{askedServer("Address of the server to call."), token(), authority()},
		nodeSettings())
}

// nodeSettings returns the settings of every command that opens a catalog: the location of the
// store, and the settings for its storages.
func nodeSettings() []setting {
	return append(storeSettings(),
		setting{name: "trusted-storage", value: "URL", list: true,
			usage: "Endpoint of a private cloud to which this process may send its tokens, in addition to hosts " +
				"of Google and Azure. A warehouse on gs:// or abfss:// names the endpoint in a storage option. " +
				"May be repeated.",
			set: func(c *Config, v []string) error {
				c.TrustedStorages = v
				for _, endpoint := range v {
					if err := adls.CheckEndpoint(endpoint); err != nil {
						return err
					}
				}
				return nil
			}},
		secretsKey(), formerSecretsKey())
}

// secretsKey returns the setting for the address of the keys that seal secrets.
func secretsKey() setting {
	return setting{name: "secrets-key", value: "FILE|URI",
		set: keyAddress(func(c *Config) *string { return &c.SecretsKey }),
		usage: "Key that seals the secrets of warehouses. It is the path of a file made by moorage secrets init, " +
			"or the URI of a key that never leaves its service. The forms of the URI are " +
			"hcvault://HOST:8200/transit/keys/NAME?token-file=FILE (and &ca=FILE), " +
			"aws-kms://arn:aws:kms:REGION:ACCOUNT:key/ID, and " +
			"gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K. The last two may end in ?endpoint=URL, " +
			"for a private network. Default: no key, so no warehouse can have a secret."}
}

// formerSecretsKey returns the setting for the previous address of the keys that seal secrets.
func formerSecretsKey() setting {
	return setting{name: "former-secrets-key", value: "FILE|URI",
		set: keyAddress(func(c *Config) *string { return &c.FormerSecretsKey }),
		usage: "Previous value of --secrets-key. Secrets sealed with that key can still be opened, and moorage " +
			"secrets rotate --keep-key reseals them with --secrets-key. Default: none."}
}

// keyAddress is like text, for the address of a key.
func keyAddress(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		*field(c) = values[0]
		if _, err := ParseKeyAddress(values[0]); err != nil {
			return err
		}
		return notEmpty(values[0])
	}
}

// warehouseSettings returns the settings that only warehouse create has.
func warehouseSettings() []setting {
	return []setting{
		{name: "location", value: "URI", set: place(func(c *Config) *string { return &c.Location }),
			flagOnly: true, required: true,
			usage: "Location for the tables of the warehouse: file:///absolute/folder, s3://bucket/prefix, " +
				"gs://bucket/prefix or abfss://container@account.dfs.core.windows.net/path."},
		warehouseLocation(), property(), delegation(), secretFile(), storageOption(),
	}
}

// changeSettings returns the settings that only warehouse change has.
func changeSettings() []setting {
	removal := func(name, what string, field func(*Config) *[]string) setting {
		return setting{name: name, value: "NAME", list: true, flagOnly: true,
			usage: what + " to remove. May be repeated.",
			set: func(c *Config, values []string) error {
				*field(c) = values
				return nil
			}}
	}
	offers := delegation()
	offers.usage += " The new values replace those that the warehouse offers now; none means that it offers no " +
		"access."
	removed := removal("remove-location", "Allowed location", func(c *Config) *[]string { return &c.RemovedLocations })
	removed.value = "URI"
	return []setting{
		warehouseLocation(), removed,
		property(), removal("remove-property", "Property", func(c *Config) *[]string { return &c.RemovedProperties }),
		offers, secretFile(),
		{name: "no-secret", flagOnly: true,
			set:   toggle(func(c *Config) *bool { return &c.NoSecret }),
			usage: "Remove the secret. The server then uses the credentials of its process."},
		storageOption(),
		removal("remove-storage-option", "Storage option",
			func(c *Config) *[]string { return &c.RemovedOptions }),
	}
}

// warehouseLocation returns the setting for the allowed locations of one warehouse.
func warehouseLocation() setting {
	allow := allowLocation()
	allow.flagOnly = true
	allow.usage = "Additional location below which tables of the warehouse may be. May be repeated."
	return allow
}

func property() setting {
	return setting{name: "property", value: "KEY=VALUE", list: true, flagOnly: true,
		usage: "Property of the warehouse, such as table-default.write.format.default=orc. Every client gets it " +
			"as a default for its own configuration. Must not be a secret. May be repeated.",
		set: pairs(func(c *Config) *map[string]string { return &c.Properties })}
}

// DelegationNone is the delegation of a warehouse that offers engines no access.
const DelegationNone = "none"

func delegation() setting {
	return setting{name: "delegation", value: "WAY", list: true, flagOnly: true,
		usage: "How engines without a storage key get access to files: vended-credentials or remote-signing. The " +
			"server first tests that the storage enforces this. May be repeated, the preferred one first.",
		set: func(c *Config, values []string) error {
			c.Delegation = values
			return nil
		}}
}

func secretFile() setting {
	return setting{name: "secret-file", value: "FILE", flagOnly: true,
		set: text(func(c *Config) *string { return &c.SecretFile }),
		usage: "JSON file with the storage key: access-key-id and secret-access-key for S3, client-secret or " +
			"account-key for Azure, or the key file of a service account for Google Cloud Storage. The server " +
			"seals the content with --secrets-key. Default: the credentials of the process."}
}

func storageOption() setting {
	return setting{name: "storage-option", value: "NAME=VALUE", list: true, flagOnly: true,
		usage: "Storage option of the warehouse, such as s3.endpoint=http://127.0.0.1:9000 or " +
			"s3.sts.role-arn=arn:aws:iam::123456789012:role/engines. Must not be a secret. May be repeated.",
		set: pairs(func(c *Config) *map[string]string { return &c.StorageOptions })}
}

// pairs returns the set function of a setting whose values have the form KEY=VALUE.
func pairs(field func(*Config) *map[string]string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		read := make(map[string]string, len(values))
		for _, pair := range values {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return fmt.Errorf("%q is not KEY=VALUE", pair)
			}
			read[key] = value
		}
		*field(c) = read
		return nil
	}
}

func allowLocation() setting {
	return setting{name: "allow-location", value: "URI", list: true,
		usage: "Additional location for tables of the warehouse called default. The first start, which creates " +
			"the warehouse, stores it in the warehouse's record. Warehouses that are created over the network " +
			"can use only folders of this machine below one of these locations, or below the folder warehouse in " +
			"--data. May be repeated.",
		set: func(c *Config, v []string) error {
			c.AllowLocations = v
			for _, uri := range v {
				if err := CheckLocation(uri); err != nil {
					return err
				}
			}
			return nil
		}}
}

// askedServer returns the setting for the address of a running server.
func askedServer(usage string) setting {
	unless := []string{"data", "store"} // a flag that names a store overrides a server in the environment
	return setting{name: "uri", value: "URI", unless: unless, usage: usage, set: func(c *Config, v []string) error {
		u, err := url.Parse(v[0])
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return fmt.Errorf("%q is not an address such as http://127.0.0.1:8181", v[0])
		}
		c.URI = strings.TrimSuffix(v[0], "/")
		return nil
	}}
}
