package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TransferWords are the operands and settings of import and export.
type TransferWords struct {
	Kind  string // rest, sql, files, list or dir
	Place string // the address of the other catalog, a location, a file or a folder

	Warehouse, Prefix, OAuthURI, Scope string              // of the other catalog, if it is a REST catalog
	Token, Credential                  string              // credentials for the other catalog
	Header                             map[string][]string // headers of requests to it: values by name
	Catalog                            string              // sql: the name of the catalog in the database

	Include, Exclude []string
	Into             []string // levels in front of each namespace
	Jobs             int
	State            string // file of the journal; empty for none
	Watch            time.Duration

	Writable, SourceFrozen, Detach bool
}

// The kinds of the other catalog.
const (
	TransferREST  = "rest"
	TransferSQL   = "sql"
	TransferFiles = "files"
	TransferList  = "list"
	TransferDir   = "dir"
)

// jobsMax is the limit of --jobs. More requests would only wait at the catalogs.
const jobsMax = 256

func transferText(field func(*TransferWords) *string) func(*Config, []string) error {
	return text(func(c *Config) *string { return field(&c.Transfer) })
}

func transferToggle(field func(*TransferWords) *bool) func(*Config, []string) error {
	return toggle(func(c *Config) *bool { return field(&c.Transfer) })
}

// otherREST returns the settings of the other catalog if it is a REST catalog. role is "source" or
// "target".
func otherREST(role string) []setting {
	return []setting{
		{name: role + "-warehouse", value: "NAME", flagOnly: true,
			usage: "Warehouse in the other catalog, as the parameter of GET /v1/config. Default: the catalog's " +
				"default.",
			set: transferText(func(w *TransferWords) *string { return &w.Warehouse })},
		{name: role + "-prefix", value: "PREFIX", flagOnly: true,
			usage: "Prefix of the other catalog's paths, in place of the configured one. For Nessie: " +
				"BRANCH|WAREHOUSE.",
			set: transferText(func(w *TransferWords) *string { return &w.Prefix })},
		{name: role + "-token", value: "TOKEN",
			usage: "Bearer token for the other catalog. Prefer the variable, because other users of the machine " +
				"can see command lines.",
			set: transferText(func(w *TransferWords) *string { return &w.Token })},
		{name: role + "-credential", value: "CLIENT:SECRET",
			usage: "OAuth2 client credentials for the other catalog. Prefer the variable.",
			set:   transferText(func(w *TransferWords) *string { return &w.Credential })},
		{name: role + "-oauth2-server-uri", value: "URI", flagOnly: true,
			usage: "Token endpoint for the credential. Default: /v1/oauth/tokens of the other catalog.",
			set:   transferText(func(w *TransferWords) *string { return &w.OAuthURI })},
		{name: role + "-scope", value: "SCOPE", flagOnly: true, usage: "Scope of that token. Default: catalog.",
			set: transferText(func(w *TransferWords) *string { return &w.Scope })},
		{name: role + "-header", value: "NAME:VALUE", list: true, flagOnly: true,
			usage: "Header of each request to the other catalog. May be repeated.",
			set: func(c *Config, v []string) error {
				c.Transfer.Header = make(map[string][]string)
				for _, each := range v {
					name, value, ok := strings.Cut(each, ":")
					if !ok || strings.TrimSpace(name) == "" {
						return fmt.Errorf("%q is not NAME:VALUE", name)
					}
					name = strings.TrimSpace(name)
					c.Transfer.Header[name] = append(c.Transfer.Header[name], strings.TrimSpace(value))
				}
				return nil
			}},
	}
}

// choosing returns the settings that select objects.
func choosing() []setting {
	return []setting{
		{name: "include", value: "GLOB", list: true, flagOnly: true,
			usage: "Only tables and views whose names match, such as sales.*; a star also matches dots. May be " +
				"repeated.",
			set: func(c *Config, v []string) error {
				c.Transfer.Include = v
				return nil
			}},
		{name: "exclude", value: "GLOB", list: true, flagOnly: true,
			usage: "Leave out tables and views whose names match. May be repeated.",
			set: func(c *Config, v []string) error {
				c.Transfer.Exclude = v
				return nil
			}},
		{name: "into", value: "NAMESPACE", flagOnly: true, usage: "Put all namespaces below this one.",
			set: func(c *Config, v []string) error {
				name, err := ParseName(v[0])
				if err == nil && (name.Warehouse != "" || name.IsAll) {
					err = errors.New("is a namespace, without a warehouse")
				}
				c.Transfer.Into = name.Levels
				return err
			}},
		{name: "jobs", value: "N", preset: "16", flagOnly: true, usage: "Maximum number of objects in progress " +
			"at a time.",
			set: one(within(strconv.Atoi, 1, jobsMax), "a number from 1 to 256",
				func(c *Config) *int { return &c.Transfer.Jobs })},
		{name: "state", value: "FILE", flagOnly: true,
			usage: "Journal of the run, with a line of JSON for each step. If the command is killed, run it " +
				"again with the same file to continue.",
			set: transferText(func(w *TransferWords) *string { return &w.State })},
	}
}

// importing returns the settings of an import. own are the settings for the kind of source.
func importing(own ...setting) []setting {
	own = append(own, choosing()...)
	return forChange(append(own,
		setting{name: "watch", value: "DURATION", flagOnly: true,
			usage: "Repeat the import, with this pause between the runs, until the command is stopped.",
			set: one(parseDuration, "a duration such as 30s",
				func(c *Config) *time.Duration { return &c.Transfer.Watch })},
		setting{name: "writable", flagOnly: true,
			usage: "Make ordinary tables instead of mirrors. They diverge with commits here or at the source.",
			set:   transferToggle(func(w *TransferWords) *bool { return &w.Writable })},
		setting{name: "source-frozen", flagOnly: true,
			usage: "Confirm that nothing writes to the source any more. --writable needs this if maintenance " +
				"deletes files of the target.",
			set: transferToggle(func(w *TransferWords) *bool { return &w.SourceFrozen })})...)
}

const importText = `
The command prints a plan, creates namespaces, registers the metadata files, and compares each
object with the source. It copies no files. The tables become mirrors: you can read them, but
commits to them are refused until moorage import cutover. A later import moves the mirrors to the
newest metadata files of the source. With --dry-run, the command prints the plan and changes
nothing.

The exit code is 3 if something did not arrive, or differs. The guide docs/guide/move-in.md has
examples.
`

// placed returns a function that reads the only operand of a transfer: the place of the other
// catalog.
func placed(kind, example string) func(*Config, []string) error {
	return func(c *Config, words []string) error {
		if len(words) != 1 || words[0] == "" {
			return fmt.Errorf("takes one word, such as %s", example)
		}
		c.Transfer.Kind, c.Transfer.Place = kind, words[0]
		return nil
	}
}

// sqlSettings returns the settings of a catalog in a database.
func sqlSettings() []setting {
	return []setting{{name: "catalog", value: "NAME", flagOnly: true,
		usage: "Name of the catalog in the database. Default: the only one.",
		set:   transferText(func(w *TransferWords) *string { return &w.Catalog })}}
}

// transferCommands returns the commands that import and export tables.
func transferCommands() []command {
	const rest, dsn = "https://old.example.com", "postgres://reader@db.example.com/iceberg"
	operands := []Operand{OperandOther}
	return []command{
		{
			name: "import rest", operand: "URI", operands: operands, words: placed(TransferREST, rest), connects: true,
			summary: "tables of another REST catalog", validate: validateTransfer,
			settings: importing(otherREST("source")...),
			text: `Imports the tables and views of a catalog with the Iceberg REST protocol into a warehouse. The
catalog can be Moorage, Polaris, Lakekeeper, Nessie, Gravitino, Unity Catalog or the reference
server.
` + importText,
		},
		{
			name: "import sql", operand: "DSN", operands: operands, words: placed(TransferSQL, dsn), connects: true,
			summary: "tables of a catalog in a database", validate: validateTransfer,
			settings: importing(sqlSettings()...),
			text: `Imports the tables and views of a catalog in a database into a warehouse: the JdbcCatalog of Java,
or the SqlCatalog of PyIceberg. DSN is postgres://USER@HOST/NAME or sqlite:FILE. The variable
PGPASSWORD can contain the password.
` + importText,
		},
		{
			name: "import files", operand: "LOCATION", operands: operands, connects: true,
			words: placed(TransferFiles, "s3://lake/warehouse"), validate: validateTransfer,
			summary: "tables in a folder without a catalog", settings: importing(),
			text: `Imports the tables below a folder into a warehouse, such as the tables of a Hadoop catalog or of a
lost catalog. A table is a folder that contains a folder called metadata. Its namespace is the path
to it. The metadata file with the highest version is the current one. The server lists the folder,
through the storage of the warehouse.
` + importText,
		},
		{
			name: "import list", operand: "FILE|-", operands: operands, connects: true,
			words: placed(TransferList, "tables.csv"), validate: validateTransfer,
			summary: "tables in a list of metadata files", settings: importing(),
			text: `Imports the tables and views in a list into a warehouse. The list is CSV with the columns namespace,
name, kind and metadata-location, or has one JSON object with these members on each line. kind is
table or view. A single dash means standard input.
` + importText,
		},
		{
			name: "import cutover", operand: "rest|sql|files|list PLACE", operands: operands, connects: true,
			words: func(c *Config, words []string) error {
				if len(words) != 2 {
					return errors.New("takes the words of the import, such as rest " + rest)
				}
				c.Transfer.Kind, c.Transfer.Place = words[0], words[1]
				_, err := oneOf(TransferREST, TransferSQL, TransferFiles, TransferList)(words[0])
				if err != nil {
					err = errors.New("begins with rest, sql, files or list")
				}
				return err
			},
			summary: "end the mirrors: write here from now on", validate: validateCutover,
			settings: forRisk(append(append(append(otherREST("source"), sqlSettings()...), choosing()...),
				setting{name: "source-frozen", flagOnly: true,
					usage: "Confirm that nothing writes to the source any more.",
					set:   transferToggle(func(w *TransferWords) *bool { return &w.SourceFrozen })},
				setting{name: "detach", flagOnly: true,
					usage: "First remove each table from the source, without its files, so that no commit can " +
						"follow. Possible only if the source is a database, or a REST catalog that can " +
						"unregister tables.",
					set: transferToggle(func(w *TransferWords) *bool { return &w.Detach })})...),
			text: `Ends the mirrors of an import. Each mirror moves to the last metadata file of the source, is
compared with it, and then becomes an ordinary table. The command takes the same operands and
settings as the import. First stop the writers at the source and confirm that with --source-frozen,
or use --detach.

A table that differs from the source stays a mirror, and the exit code is 3. You can run the same
command again.
`,
		},
		{
			name: "export list", words: func(c *Config, words []string) error {
				c.Transfer.Kind = TransferList
				if len(words) > 0 {
					return errors.New("takes no words")
				}
				return nil
			}, connects: true, summary: "print all tables with their metadata files",
			settings: forPeople(choosing()[:2]...),
			text: `Prints the tables and views of a warehouse as CSV, with the columns namespace, name, kind and
metadata-location. With -o jsonl, it prints JSON lines instead. moorage import list reads both
formats.
`,
		},
		{
			name: "export rest", operand: "URI", operands: operands, words: placed(TransferREST, rest), connects: true,
			summary: "register all tables at another REST catalog", validate: validateStopped,
			settings: forChange(append(otherREST("target"), choosing()...)...),
			text: `Registers the tables and views of a warehouse, with their namespaces, at another catalog with the
Iceberg REST protocol, and compares them. It copies no files and changes nothing here, so stop the
writers first. The exit code is 3 if something did not arrive, or differs.
`,
		},
		{
			name: "export dir", operand: "DIR", operands: operands, connects: true,
			words: placed(TransferDir, "./catalog"), summary: "write all names and locations into files",
			settings: forPeople(choosing()[:2]...),
			text: `Writes a JSON file for each namespace, with its properties, and for each table and view, with the
location of its metadata file, into a folder. The folder must not exist, or must be from an earlier
run of this command. In that case, the command removes the files of objects that are gone. Equal
catalogs give equal files, so the folder can be kept in git.
`,
		},
	}
}

// validateTransfer refuses flags that do not go together.
func validateTransfer(c Config, faults *usageError) {
	validateStopped(c, faults)
	if c.Transfer.Watch > 0 && c.People.DryRun {
		faults.addf("import: --watch and --dry-run do not go together")
	}
	if c.Transfer.SourceFrozen && !c.Transfer.Writable {
		faults.addf("import: --source-frozen goes with --writable, and with import cutover")
	}
	validateCredentials(c, faults)
}

// validateCredentials refuses two ways to authenticate.
func validateCredentials(c Config, faults *usageError) {
	if c.Transfer.Token != "" && c.Transfer.Credential != "" {
		faults.addf("give either a token or a credential for the other catalog")
	}
}

// validateCutover refuses a cut-over that could lose commits.
func validateCutover(c Config, faults *usageError) {
	validateStopped(c, faults)
	validateCredentials(c, faults)
	if c.Transfer.SourceFrozen == c.Transfer.Detach {
		faults.addf("import cutover: it needs either --source-frozen or --detach")
	}
}
