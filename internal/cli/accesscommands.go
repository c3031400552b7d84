package cli

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"time"

	"moorage/access"
)

const accessText = `
With --uri, the command calls the server at that address, as the caller of MOORAGE_TOKEN. Without
it, the command opens the store itself, as the caller system:operator, which may do everything: the
access rights of the operating system protect the store. If the store is a folder, its server must
be stopped.
`

const objectText = `
OBJECT is the word server, or a kind and a name: warehouse W, namespace W.A.B, table W.A.B.T, view
W.A.B.V. Put a part that contains a dot in double quotes. GRANTEE is one of these: a principal,
written as an issuer, a colon and a name, such as corp:ann or key:etl; a role such as analysts; a
role of an issuer, such as corp/analysts; or everyone. The word role or principal may precede it.
`

// accessCommands returns the commands that manage keys, roles and grants.
func accessCommands() []command {
	commands := append(keyCommands(), roleCommands()...)
	return append(append(commands, grantCommands()...),
		command{
			name: "access enable", summary: "switch access control on", settings: asking(),
			validate: validateStopped,
			text: `Switches access control on, for good. From then on, every operation needs a grant, and a server
starts only if it authenticates its callers (--keys, --issuer, --tls-client-ca). You also need an
administrator: create one with moorage key create --admin, or name one with --admin of serve.
Without --uri, the command creates the store if it does not exist. Over the network, only a
principal named in the server's --admin can run the command.
` + accessText,
		},
		command{
			name: "access export", summary: "print the access policy as JSON", settings: asking(),
			validate: validateStopped,
			text: `Prints the principals and roles that have a record, and the grants on each object and its owner. It
prints no secrets.
` + accessText,
		})
}

func keyCommands() []command {
	expires := setting{name: "expires", value: "DURATION", preset: "90d", flagOnly: true,
		usage: "How long the secret is valid, such as 90d or 12h.",
		set: one(parseDuration, "a duration such as 90d, more than 0",
			func(c *Config) *time.Duration { return &c.Expires })}
	return []command{
		{
			name: "key create", operand: "NAME", words: wordsOfKey,
			summary: "create an API key", validate: validateStopped,
			settings: asking(
				setting{name: "admin", flagOnly: true,
					set: toggle(func(c *Config) *bool { return &c.Admin }),
					usage: "Let the key administer the server: warehouses, principals, roles and grants, but not " +
						"data. The first such key switches access control on."},
				expires, keyRole(), description()),
			text: `Creates a key for the principal key:NAME and prints it, once. Clients send it as a bearer token, or
as a client credential. The server must run with --keys.
` + accessText,
		},
		{
			name: "key list", summary: "list the API keys", settings: asking(), validate: validateStopped,
			text: "Prints each key, with its principal and its end. It prints no secrets.\n" + accessText,
		},
		{
			name: "key rotate", operand: "NAME ID", words: wordsOfKeyID,
			summary:  "give an API key another secret",
			validate: validateStopped,
			settings: asking(expires, setting{name: "grace", value: "DURATION", preset: "24h", flagOnly: true,
				usage: "How long the present secret stays valid, such as 24h. With 0s, it ends at once.",
				set: one(within(parseDays, 0, graceMax), "a duration from 0s to 90d",
					func(c *Config) *time.Duration { return &c.Grace })}),
			text: "Gives a key another secret and prints it, once. The present secret stays valid for --grace.\n" +
				accessText,
		},
		{
			name: "key withdraw", operand: "[NAME ID]", words: wordsOfWithdrawal, summary: "end an API key at once",
			settings: asking(setting{name: "sessions", flagOnly: true,
				usage: "End the sessions of all people in browsers, instead of a key.",
				set:   toggle(func(c *Config) *bool { return &c.Sessions })}),
			validate: validateWithdrawal,
			text: `Ends a key. From then on, every node refuses requests with the key, and with tokens that were issued
for it. With --sessions, the command ends all sessions of the console instead: people in browsers
must sign in again. Their keys and tokens stay valid.
` + accessText,
		},
	}
}

// validateWithdrawal validates key withdraw: it takes either a key or the sessions.
func validateWithdrawal(c Config, faults *usageError) {
	validateStopped(c, faults)
	if c.Sessions == (c.Access.Key != "") {
		faults.addf("key withdraw: takes either NAME ID, as moorage key list shows them, or --sessions")
	}
}

// graceMax is the longest time for which both secrets of a key are valid.
const graceMax = 90 * 24 * time.Hour

func roleCommands() []command {
	return []command{
		{
			name: "role list", summary: "list the roles and their members", settings: asking(),
			validate: validateStopped,
			text:     "Prints each role with its direct members.\n" + accessText,
		},
		{
			name: "role create", operand: "NAME", words: wordsOfRole,
			summary: "create a role", validate: validateStopped,
			settings: asking(description()),
			text:     "Creates a role without members. An existing role keeps its members.\n" + accessText,
		},
		{
			name: "role drop", operand: "NAME", words: wordsOfRole,
			summary: "remove a role", validate: validateStopped,
			settings: asking(),
			text: "Removes a role, its grants and its ownership. A later role with that name does not get them.\n" +
				accessText,
		},
		{
			name: "role add", operand: "NAME MEMBER...", words: wordsOfMembers,
			summary:  "add members to a role",
			validate: validateStopped, settings: asking(),
			text: `Adds members to a role: principals such as corp:ann and key:etl, other roles, and roles of an issuer,
such as corp/analysts.
` + accessText,
		},
		{
			name: "role remove", operand: "NAME MEMBER...", words: wordsOfMembers,
			summary:  "remove members from a role",
			validate: validateStopped, settings: asking(),
			text: "Removes members from a role.\n" + accessText,
		},
	}
}

func grantCommands() []command {
	return []command{
		{
			name: "grant", operand: "PRIVILEGES on OBJECT to GRANTEE", words: wordsOfGrant("to"),
			summary: "grant privileges", settings: asking(), validate: validateStopped,
			text: fmt.Sprintf(`Grants privileges, which are separated by commas. A grant on an object also holds for
everything in it.

  moorage grant read on table default.sales.orders to role analysts

The privileges are:
%s`, wrapped(allPrivileges())) + objectText + accessText,
		},
		{
			name: "revoke", operand: "PRIVILEGES on OBJECT from GRANTEE", words: wordsOfGrant("from"),
			summary: "revoke privileges", settings: asking(), validate: validateStopped,
			text: `Revokes privileges that were granted to this grantee on this object. The grantee keeps privileges
from its roles, and from grants on containers of the object.
` + objectText + accessText,
		},
		{
			name: "grants", operand: "on OBJECT|to GRANTEE", words: wordsOfGrants,
			summary:  "show grants",
			settings: asking(), validate: validateStopped,
			text: "Prints the grants on an object, or the direct grants to a grantee.\n" + objectText + accessText,
		},
		{
			name: "owner", operand: "OBJECT to GRANTEE", words: wordsOfOwner, summary: "hand an object over",
			settings: asking(), validate: validateStopped,
			text: `Makes a principal or a role the owner of an object. The owner has all privileges on it. A definer
view reads with the privileges of its owner, so only an administrator may change that owner.
` + objectText + accessText,
		},
		{
			name: "explain", operand: "OPERATION on OBJECT [through VIEW...] [for PRINCIPAL [by ENGINE]]",
			words:   wordsOfExplain,
			summary: "explain an access decision", settings: asking(), validate: validateStopped,
			text: `Prints the path from the object to the server, with the grants that count, the missing privileges,
and the grantees that could grant them. OPERATION is a privilege such as read, or a verb of the
audit log such as load-table. Without for, the principal is the caller.

  moorage explain load-table on table lake.a.t through lake.a.v for corp:ann by key:trino

With through, the object is a table that an engine loads for a principal through views. List the
outermost view first. The command then also prints whose privileges decide.
` + objectText + accessText,
		},
	}
}

// allPrivileges returns the set of all privileges.
func allPrivileges() (all access.Privileges) {
	for _, each := range access.Every() {
		all |= each
	}
	return all
}

// wrapped returns the names of privileges, wrapped into lines of help.
func wrapped(privileges access.Privileges) string {
	text, column := " ", 1
	for i, word := range privileges.Words() {
		if i > 0 {
			text += ","
			if column+len(word) > 90 {
				text, column = text+"\n ", 1
			}
		}
		text += " " + word
		column += len(word) + 2
	}
	return text + ".\n"
}

// token returns the setting that authenticates the caller to a server.
func token() setting {
	return setting{name: "token", value: "TOKEN", set: text(func(c *Config) *string { return &c.Token }),
		usage: "API key, or token of an issuer, with which the caller authenticates to the server at --uri. " +
			"Prefer the variable, because other users of the machine can see command lines."}
}

// authority returns the setting for the authorities that may sign a server's certificate.
func authority() setting {
	return setting{name: "ca", value: "FILE", usage: "PEM file with the authorities that sign the certificate of " +
		"the server at --uri. Default: the system's authorities.",
		set: func(c *Config, v []string) error {
			text, err := os.ReadFile(v[0])
			if err != nil {
				return err
			}
			c.Authorities = x509.NewCertPool()
			if !c.Authorities.AppendCertsFromPEM(text) {
				return fmt.Errorf("%s has no certificate in PEM", v[0])
			}
			return nil
		}}
}

func keyRole() setting {
	return setting{name: "role", value: "ROLE", list: true, flagOnly: true,
		usage: "Role to which the key is limited: the key has only the privileges of these roles. May be " +
			"repeated.",
		set: func(c *Config, v []string) error {
			c.Roles = v
			for _, role := range v {
				if err := access.CheckGrantee(role); err != nil {
					return err
				}
			}
			return nil
		}}
}

func description() setting {
	return setting{name: "description", value: "TEXT", flagOnly: true,
		set: text(func(c *Config) *string { return &c.Description }), usage: "Purpose, for human readers."}
}

func tombstoneSetting() setting {
	return setting{name: "location", value: "URI", flagOnly: true, required: true,
		usage: "The location, as printed by warehouse tombstones.",
		set:   text(func(c *Config) *string { return &c.Location })}
}

// warehouseCommands returns the commands about warehouses.
func warehouseCommands() []command {
	return []command{
		{
			name: "warehouse create", operand: "NAME", summary: "add a warehouse",
			settings: asking(warehouseSettings()...), validate: validateStopped,
			text: `Adds a warehouse, whose tables go below --location. If you give an endpoint, region, path style or
profile of S3, it is stored with the warehouse and overrides the server's own. An access key must be
in a --secret-file. The command tests the storage first, and creates no warehouse if a test fails.
` + accessText,
		},
		{
			name: "warehouse list", summary: "list the warehouses", settings: asking(), validate: validateStopped,
			text: "Prints every warehouse and its location, sorted by name.\n" + accessText,
		},
		{
			name: "warehouse show", operand: "NAME", summary: "show a warehouse", settings: asking(),
			validate: validateStopped,
			text: "Prints everything about a warehouse, but of its secret only the kind and when it was set.\n" +
				accessText,
		},
		{
			name: "warehouse change", operand: "NAME", summary: "change a warehouse, or its secret",
			settings: asking(changeSettings()...), validate: validateChange,
			text: `Changes the parts of a warehouse given by flags, and keeps the rest. The command tests the storage
first, and changes nothing if a test fails. The node that makes the change uses it at once, and
other nodes within 2 seconds. The command cannot move a warehouse: files stay where they are. A
location with tables or views in it cannot be removed.
` + accessText,
		},
		{
			name: "warehouse validate", operand: "NAME", summary: "test the storage of a warehouse", settings: asking(),
			validate: validateStopped,
			text: `Writes, reads, lists and deletes small files in the warehouse. It also tests whether the storage
confines the credentials for engines to their folders. If it does not, the warehouse no longer
offers such credentials. The exit code is 3 if a test failed.
` + accessText,
		},
		{
			name: "warehouse tombstones", operand: "NAME", summary: "list the former locations of dropped tables",
			settings: asking(), validate: validateStopped,
			text: `Prints the locations in a warehouse where dropped tables and views may have left files, each with
the object's last name, and when and how it ended. A new table or view at, above or below such a
location needs the privilege locate, and no job removes orphans there.
` + accessText,
		},
		{
			name: "warehouse clear", operand: "NAME", summary: "clear the former location of a dropped table",
			settings: asking(tombstoneSetting()), validate: validateStopped,
			text: `Makes the catalog forget that there was a table or view at --location. First check whether its files
still exist, and whether another catalog has the table. The command deletes no files. It needs the
privileges locate and purge on the warehouse.
` + accessText,
		},
		{
			name: "warehouse drop", operand: "NAME", summary: "remove an empty warehouse", settings: asking(),
			validate: validateStopped,
			text:     "Removes a warehouse that has no namespaces. Files below its location stay.\n" + accessText,
		},
	}
}

func validateChange(c Config, faults *usageError) {
	validateStopped(c, faults)
	if len(c.Properties)+len(c.RemovedProperties)+len(c.StorageOptions)+len(c.RemovedOptions)+len(c.Delegation)+
		len(c.AllowLocations)+len(c.RemovedLocations) == 0 && c.SecretFile == "" && !c.NoSecret {
		faults.addf("warehouse change: name what to change, such as --secret-file")
	}
	if c.SecretFile != "" && c.NoSecret {
		faults.addf("--secret-file sets a secret, and --no-secret removes it: give one of them")
	}
	if slices.Contains(c.Delegation, DelegationNone) && len(c.Delegation) > 1 {
		faults.addf("--delegation: none excludes the others")
	}
}

// secretsCommands returns the commands about the keys that seal warehouse secrets.
func secretsCommands() []command {
	return []command{
		{
			name: "secrets init", summary: "create the file of keys that seal secrets",
			settings: []setting{configFile(), secretsKey()}, validate: validateSecretsKey,
			text: `Creates the file given by --secrets-key, with one key. The file must not exist yet. Only its owner
can read it. Without the file, no server can open the secrets of warehouses. Keep a copy, separate
from the backups of the store.
`,
		},
		{
			name: "secrets draw", summary: "add a key to the file of keys",
			settings: []setting{configFile(), secretsKey()}, validate: validateSecretsKey,
			text: `Adds a key to the file given by --secrets-key. New secrets are sealed with this key; nothing else
changes. If each server has its own copy of the file, begin with this command, copy the file to all
servers, and then run moorage secrets rotate --keep-key.
`,
		},
		{
			name: "secrets rotate", summary: "reseal all secrets with another key",
			settings: asking(
				setting{name: "keep-key", flagOnly: true, usage: "Reseal with the present key, without adding a " +
					"new one.",
					set: toggle(func(c *Config) *bool { return &c.KeepKey })}),
			validate: validateSecrets,
			text: `Adds a key to --secrets-key, and reseals all secrets in the store with it. The old key stays in the
file, for earlier backups. Other servers read their file again when they find a secret with the new
key. After an error, run the command again with --keep-key; secrets that are already resealed stay
so.

It also replaces the key of the console's sessions, so people in browsers must sign in again.

With --uri, the server at that address does this, with its own --secrets-key. Without it, the
command opens the store itself. If the store is a folder, its server must be stopped.
`,
		},
	}
}

func validateSecretsKey(c Config, faults *usageError) {
	switch {
	case c.SecretsKey == "":
		faults.addf("--secrets-key: name the file of keys")
	case isURI(c.SecretsKey):
		faults.addf("--secrets-key: this command is for keys in a file; a key service creates its own")
	}
}

func validateSecrets(c Config, faults *usageError) {
	if c.URI == "" && c.SecretsKey == "" {
		faults.addf("--secrets-key: it is required without --uri")
	}
	validateStopped(c, faults)
}
