package cli

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"moorage/access"
)

const accessText = `
With --uri the command asks the server that runs there, as the caller of MOORAGE_TOKEN. Without it
the command opens the store itself and may do everything, as those may who can open the store. If
that is a folder, its server must be stopped.
`

const objectText = `
An object is the word server, or a kind and a name: warehouse W, namespace W.A.B, table W.A.B.T,
view W.A.B.V. A part with a dot in it stands in double quotes. A grantee is a principal, issuer and
name with a colon between them, such as corp:ann or key:etl; a role such as analysts; a role that an
issuer names, such as corp/analysts; or everyone. The words role and principal may stand before it.
`

// accessCommands returns the commands that manage keys, roles and grants.
func accessCommands(actions Actions) []command {
	commands := append(keyCommands(actions), roleCommands(actions)...)
	return append(append(commands, grantCommands(actions)...),
		command{
			name: "access enable", summary: "decide from now on what callers may do", settings: asking(),
			validate: validateStopped, run: actions.AccessEnable,
			text: `Switches access on, for good: from then on nobody may do anything without a grant, and a server
starts only if it knows who asks (--keys, --issuer, --tls-client-ca). Make an administrator too,
with moorage key create --admin, or name one with --admin of serve. Without --uri the command makes
the store if there is none. A server lets only its --admin do this.
` + accessText,
		},
		command{
			name: "access export", summary: "print all policy as JSON", settings: asking(), validate: validateStopped,
			run: actions.AccessExport,
			text: `Prints the principals and roles that have a record, and for each object the grants to anybody and the
owner that it was handed over to. Secrets are not in it.
` + accessText,
		})
}

func keyCommands(actions Actions) []command {
	expires := setting{name: "expires", value: "DURATION", preset: "90d", flagOnly: true,
		usage: "How long the secret is good, such as 90d or 12h.",
		set: one(parseDuration, "a duration such as 90d, more than 0",
			func(c *Config) *time.Duration { return &c.Expires })}
	return []command{
		{
			name: "key create", operand: "NAME", words: wordsOfKey,
			summary: "make an API key", validate: validateStopped,
			run: actions.KeyCreate,
			settings: asking(
				setting{name: "admin", flagOnly: true,
					set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.Admin }),
					usage: "Let it administer the server: warehouses, principals, roles and grants, but no data. The " +
						"first such key switches access on."},
				expires, keyRole(), description()),
			text: `Makes a key of the principal key:NAME and prints it, once. Clients show it as a bearer token, or as
a credential. The server must run with --keys.
` + accessText,
		},
		{
			name: "key list", summary: "list the API keys", settings: asking(), validate: validateStopped,
			run:  actions.KeyList,
			text: "Prints each key with its principal, and when it ends. Nobody can see a secret again.\n" + accessText,
		},
		{
			name: "key rotate", operand: "NAME ID", words: wordsOfKeyID,
			summary:  "give an API key another secret",
			validate: validateStopped, run: actions.KeyRotate,
			settings: asking(expires, setting{name: "grace", value: "DURATION", preset: "24h", flagOnly: true,
				usage: "How long the present secret is good besides, such as 24h; 0s: it ends at once.",
				set: one(within(parseDays, 0, graceMax), "a duration from 0s to 90d",
					func(c *Config) *time.Duration { return &c.Grace })}),
			text: "Prints another secret of a key, once. The present one is good for --grace more.\n" + accessText,
		},
		{
			name: "key withdraw", operand: "NAME ID", words: wordsOfKeyID, summary: "end an API key at once",
			settings: asking(), validate: validateStopped, run: actions.KeyWithdraw,
			text: `Ends a key. Requests that begin afterwards are refused on every node, also with a token that the key
was exchanged for.
` + accessText,
		},
	}
}

// graceMax bounds how long both secrets of a key are valid.
const graceMax = 90 * 24 * time.Hour

func roleCommands(actions Actions) []command {
	return []command{
		{
			name: "role list", summary: "list the roles and their members", settings: asking(),
			validate: validateStopped,
			run:      actions.RoleList, text: "Prints each role with its direct members.\n" + accessText,
		},
		{
			name: "role create", operand: "NAME", words: wordsOfRole,
			summary: "make a role", validate: validateStopped,
			settings: asking(description()), run: actions.RoleCreate,
			text: "Makes a role without members. One that is there keeps its members.\n" + accessText,
		},
		{
			name: "role drop", operand: "NAME", words: wordsOfRole,
			summary: "remove a role", validate: validateStopped,
			settings: asking(), run: actions.RoleDrop,
			text: "Removes a role. What was granted to it and what it owned ends with it, and a role that gets its\n" +
				"name later has nothing of that.\n" + accessText,
		},
		{
			name: "role add", operand: "NAME MEMBER...", words: wordsOfMembers,
			summary:  "add members to a role",
			validate: validateStopped, settings: asking(), run: actions.RoleAdd,
			text: `Adds members to a role: principals such as corp:ann and key:etl, other roles, and roles that an
issuer names, such as corp/analysts.
` + accessText,
		},
		{
			name: "role remove", operand: "NAME MEMBER...", words: wordsOfMembers,
			summary:  "remove members from a role",
			validate: validateStopped, settings: asking(), run: actions.RoleRemove,
			text: "Removes members from a role.\n" + accessText,
		},
	}
}

func grantCommands(actions Actions) []command {
	return []command{
		{
			name: "grant", operand: "PRIVILEGES on OBJECT to GRANTEE", words: wordsOfGrant("to"),
			summary: "let somebody do something", settings: asking(), validate: validateStopped, run: actions.Grant,
			text: fmt.Sprintf(`Grants privileges, with commas between them. A grant on an object holds for all
beneath it.

  moorage grant read on table default.sales.orders to role analysts

The privileges are:
%s`, wrapped(allPrivileges())) + objectText + accessText,
		},
		{
			name: "revoke", operand: "PRIVILEGES on OBJECT from GRANTEE", words: wordsOfGrant("from"),
			summary: "take back what was granted", settings: asking(), validate: validateStopped, run: actions.Revoke,
			text: `Takes back privileges that were granted on this object to this grantee. What it has by a role,
or by a grant above the object, it keeps.
` + objectText + accessText,
		},
		{
			name: "grants", operand: "on OBJECT|to GRANTEE", words: wordsOfGrants,
			summary:  "show what was granted",
			settings: asking(), validate: validateStopped, run: actions.Grants,
			text: "Prints what was granted on one object, or to one grantee.\n" + objectText + accessText,
		},
		{
			name: "owner", operand: "OBJECT to GRANTEE", words: wordsOfOwner, summary: "hand an object over",
			settings: asking(), validate: validateStopped, run: actions.Owner,
			text: "Makes a principal or a role the owner of an object, who has all privileges on it. A view with\n" +
				"definer's rights reads with those of its owner: only an administrator gives it to others.\n" +
				objectText + accessText,
		},
		{
			name: "explain", operand: "OPERATION on OBJECT [through VIEW...] [for PRINCIPAL [by ENGINE]]",
			words:   wordsOfExplain,
			summary: "say why somebody may do something, or not", settings: asking(), validate: validateStopped,
			run: actions.Explain,
			text: `Prints the path from the object to the server with the grants that count, what is missing, and who
could grant that. An operation is a privilege such as read, or a verb of the audit log such as
load-table. Without for it is about the caller.

  moorage explain load-table on table lake.a.t through lake.a.v for corp:ann by key:trino

With through it is about a table behind views, the outermost first, which an engine loads for
somebody. It says whose rights decide.
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

// wrapped returns the words of privileges in lines of help.
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
		usage: "What shows the server of --uri who asks: an API key, or a token of an issuer. The variable is " +
			"better: other users of the machine can see command lines."}
}

// authority returns the setting for the authorities that may sign a server's certificate.
func authority() setting {
	return setting{name: "ca", value: "FILE", usage: "PEM file with the authorities that may vouch for the server " +
		"of --uri. Default: those that the system trusts.",
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
		usage: "Role that the key is narrowed to: it may only what such roles may. May be given more than once.",
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
		set: text(func(c *Config) *string { return &c.Description }), usage: "What it is for, for people."}
}

func tombstoneSetting() setting {
	return setting{name: "location", value: "URI", flagOnly: true, required: true,
		usage: "The location, as warehouse tombstones prints it.",
		set:   text(func(c *Config) *string { return &c.Location })}
}

// warehouseCommands returns the commands about warehouses.
func warehouseCommands(actions Actions) []command {
	return []command{
		{
			name: "warehouse create", operand: "NAME", summary: "add a warehouse",
			settings: asking(warehouseSettings()...), validate: validateStopped, run: actions.WarehouseCreate,
			text: `Adds a warehouse, whose tables go below --location. It keeps the endpoint, region, path style and
profile of S3 that are given, and these win over the server's. It keeps an access key only in a
--secret-file. The storage is tried first; if it does not do, there is no warehouse.
` + accessText,
		},
		{
			name: "warehouse list", summary: "list the warehouses", settings: asking(), validate: validateStopped,
			run:  actions.WarehouseList,
			text: "Prints every warehouse and its location, in the order of their names.\n" + accessText,
		},
		{
			name: "warehouse show", operand: "NAME", summary: "show a warehouse", settings: asking(),
			validate: validateStopped, run: actions.WarehouseShow,
			text: "Prints all about a warehouse. Of its secret it prints the kind, and when it was set.\n" + accessText,
		},
		{
			name: "warehouse change", operand: "NAME", summary: "change a warehouse, or its secret",
			settings: asking(changeSettings()...), validate: validateChange, run: actions.WarehouseChange,
			text: `Changes what the flags name; the rest stays. The storage is tried first; if it does not do, nothing
changes. The node that is asked goes by the change at once, and others within 2 seconds. It cannot
move a warehouse: files stay where they are. A location where tables or views live cannot be removed.
` + accessText,
		},
		{
			name: "warehouse validate", operand: "NAME", summary: "try the storage of a warehouse", settings: asking(),
			validate: validateStopped, run: actions.WarehouseValidate,
			text: `Writes, reads, lists and deletes small files in the warehouse, and tries what it offers to engines in
folders that it must not reach. What the storage does not enforce the warehouse no longer offers.
It exits with 1 if anything failed.
` + accessText,
		},
		{
			name: "warehouse tombstones", operand: "NAME", summary: "list where tables lived that are gone",
			settings: asking(), validate: validateStopped, run: actions.WarehouseTombstones,
			text: `Prints the locations in a warehouse where a table or view lived that is gone, and may have left
files: what it was called, until when it lived there and how that ended. A new table or view at, above or
below such a location takes the privilege locate, and no job removes orphans there.
` + accessText,
		},
		{
			name: "warehouse clear", operand: "NAME", summary: "clear a location where a table lived that is gone",
			settings: asking(tombstoneSetting()), validate: validateStopped, run: actions.WarehouseClear,
			text: `Forgets that a table or view lived at --location. Look first whether its files are still there, and
whether another catalog has the table. No file is deleted. It takes locate and purge on the warehouse.
` + accessText,
		},
		{
			name: "warehouse drop", operand: "NAME", summary: "remove an empty warehouse", settings: asking(),
			validate: validateStopped, run: actions.WarehouseDrop,
			text: "Removes a warehouse that has no namespaces. Files below its location stay.\n" + accessText,
		},
	}
}

func validateChange(c Config, faults *usageError) {
	validateStopped(c, faults)
	if len(c.Properties)+len(c.RemovedProperties)+len(c.StorageOptions)+len(c.RemovedOptions)+len(c.Delegation)+
		len(c.AllowLocations)+len(c.RemovedLocations) == 0 && c.SecretFile == "" && !c.NoSecret {
		faults.addf("warehouse change: say what to change, such as --secret-file")
	}
	if c.SecretFile != "" && c.NoSecret {
		faults.addf("--secret-file sets a secret, and --no-secret takes it away")
	}
	if slices.Contains(c.Delegation, DelegationNone) && len(c.Delegation) > 1 {
		faults.addf("--delegation: none stands alone")
	}
}

// secretsCommands returns the commands about the keys that seal warehouse secrets.
func secretsCommands(actions Actions) []command {
	return []command{
		{
			name: "secrets init", summary: "make the file with the keys that secrets are sealed with",
			settings: []setting{configFile(), secretsKey()}, validate: validateSecretsKey, run: actions.SecretsInit,
			text: `Makes the file that --secrets-key names, which must not exist, with one key. Only its owner may read
it. Without it no secret of a warehouse opens: keep a copy, and not where backups of the store are.
`,
		},
		{
			name: "secrets draw", summary: "add a key to the file with the keys",
			settings: []setting{configFile(), secretsKey()}, validate: validateSecretsKey,
			run: actions.SecretsDraw,
			text: `Adds a key to the file of --secrets-key, which seals from now on, and changes nothing else. Where
each server has a copy of the file, begin with this, copy the file to all of them, and then say
moorage secrets rotate --keep-key.
`,
		},
		{
			name: "secrets rotate", summary: "seal all secrets with another key",
			settings: asking(
				setting{name: "keep-key", flagOnly: true, usage: "Draw no key: seal with the one that seals now.",
					set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.KeepKey })}),
			validate: validateSecrets, run: actions.SecretsRotate,
			text: `Adds a key to --secrets-key, and seals all secrets of the store with it. The old key stays, for
backups from before. Other servers read their file again when they meet the new key. After an error
run it again, with --keep-key; what is sealed with the new key stays so.

With --uri the server that runs there does it, with its own --secrets-key. Without it the command
opens the store itself. If that is a folder, its server must be stopped.
`,
		},
	}
}

func validateSecretsKey(c Config, faults *usageError) {
	switch {
	case c.SecretsKey == "":
		faults.addf("--secrets-key: the name of the file with the keys is needed")
	case isURI(c.SecretsKey):
		faults.addf("--secrets-key: this command is for keys in a file; a service makes its own")
	}
}

func validateSecrets(c Config, faults *usageError) {
	if c.URI == "" && c.SecretsKey == "" {
		faults.addf("--secrets-key: it is needed where no server is asked")
	}
	validateStopped(c, faults)
}
