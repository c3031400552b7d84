package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TransferWords are the words and settings of import and export.
type TransferWords struct {
	Kind  string // rest, sql, files, list or dir
	Place string // the address of the other catalog, a location, a file or a folder

	Warehouse, Prefix, OAuthURI, Scope string              // of the other catalog, if it is a REST catalog
	Token, Credential                  string              // for it
	Header                             map[string][]string // values by name
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

// jobsMax bounds --jobs: more requests would wait at the catalogs.
const jobsMax = 256

func transferText(field func(*TransferWords) *string) func(*Config, []string) error {
	return text(func(c *Config) *string { return field(&c.Transfer) })
}

func transferToggle(field func(*TransferWords) *bool) func(*Config, []string) error {
	return toggle(func(c *Config) *bool { return field(&c.Transfer) })
}

// otherREST returns the settings of a REST catalog. of is what it is to the command.
func otherREST(of string) []setting {
	return []setting{
		{name: of + "-warehouse", value: "NAME", flagOnly: true,
			usage: "Its warehouse or catalog, as GET /v1/config takes it. Default: that of the server.",
			set:   transferText(func(w *TransferWords) *string { return &w.Warehouse })},
		{name: of + "-prefix", value: "PREFIX", flagOnly: true,
			usage: "Prefix of its paths, instead of the configured one. In Nessie: BRANCH|WAREHOUSE.",
			set:   transferText(func(w *TransferWords) *string { return &w.Prefix })},
		{name: of + "-token", value: "TOKEN",
			usage: "Bearer token for it. Prefer the variable: other users of the machine can see command lines.",
			set:   transferText(func(w *TransferWords) *string { return &w.Token })},
		{name: of + "-credential", value: "CLIENT:SECRET",
			usage: "OAuth2 client credentials for it. Prefer the variable.",
			set:   transferText(func(w *TransferWords) *string { return &w.Credential })},
		{name: of + "-oauth2-server-uri", value: "URI", flagOnly: true,
			usage: "Where the credential gets a token. Default: /v1/oauth/tokens of the catalog.",
			set:   transferText(func(w *TransferWords) *string { return &w.OAuthURI })},
		{name: of + "-scope", value: "SCOPE", flagOnly: true, usage: "Scope of that token. Default: catalog.",
			set: transferText(func(w *TransferWords) *string { return &w.Scope })},
		{name: of + "-header", value: "NAME:VALUE", list: true, flagOnly: true,
			usage: "Header of each request to it. It may be given several times.",
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
			usage: "Only tables and views whose names match, such as sales.*; a star matches dots too. It may be " +
				"given several times.",
			set: func(c *Config, v []string) error {
				c.Transfer.Include = v
				return nil
			}},
		{name: "exclude", value: "GLOB", list: true, flagOnly: true,
			usage: "No tables and views whose names match. It may be given several times.",
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
		{name: "jobs", value: "N", preset: "16", flagOnly: true, usage: "How many objects to work on at a time.",
			set: one(within(strconv.Atoi, 1, jobsMax), "a number from 1 to 256",
				func(c *Config) *int { return &c.Transfer.Jobs })},
		{name: "state", value: "FILE", flagOnly: true,
			usage: "Journal of the run, a line of JSON for each step. If the command is killed, the same command " +
				"with the same file goes on.",
			set: transferText(func(w *TransferWords) *string { return &w.State })},
	}
}

// importing returns the settings of an import from a catalog with the settings own.
func importing(own ...setting) []setting {
	own = append(own, choosing()...)
	return forChange(append(own,
		setting{name: "watch", value: "DURATION", flagOnly: true,
			usage: "Repeat the import, with this pause between the runs, until the command is stopped.",
			set: one(parseDuration, "a duration such as 30s",
				func(c *Config) *time.Duration { return &c.Transfer.Watch })},
		setting{name: "writable", flagOnly: true,
			usage: "Make ordinary tables, and not mirrors: commits here and at the source then part them.",
			set:   transferToggle(func(w *TransferWords) *bool { return &w.Writable })},
		setting{name: "source-frozen", flagOnly: true,
			usage: "Confirms that nothing writes at the source any more. --writable needs it if maintenance deletes " +
				"files of the target.",
			set: transferToggle(func(w *TransferWords) *bool { return &w.SourceFrozen })})...)
}

const importText = `
The command prints a plan, makes namespaces, registers the metadata files, and compares each object
with the source. No file is copied. The tables are mirrors: they can be read, and commits to them
are refused, until moorage import cutover. A later import moves the mirrors to the source's newest
files. With --dry-run it prints the plan, and changes nothing.

It exits with 3 if something did not arrive, or differs. The guide docs/guide/move-in.md has examples.
`

// placed reads the one word of a transfer: the place of the other catalog.
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

// transferCommands returns the commands that bring tables in and out.
func transferCommands() []command {
	const rest, dsn = "https://old.example.com", "postgres://reader@db.example.com/iceberg"
	operands := []Operand{OperandOther}
	return []command{
		{
			name: "import rest", operand: "URI", operands: operands, words: placed(TransferREST, rest), connects: true,
			summary: "tables of another REST catalog", validate: validateTransfer,
			settings: importing(otherREST("source")...),
			text: `Brings the tables and views of a catalog that speaks the Iceberg REST protocol into a warehouse: one
of Moorage, Polaris, Lakekeeper, Nessie, Gravitino, Unity Catalog or the reference server.
` + importText,
		},
		{
			name: "import sql", operand: "DSN", operands: operands, words: placed(TransferSQL, dsn), connects: true,
			summary: "tables of a catalog in a database", validate: validateTransfer,
			settings: importing(sqlSettings()...),
			text: `Brings the tables and views of a catalog that clients keep in a database into a warehouse: the
JdbcCatalog of Java, or the SqlCatalog of PyIceberg. The database is postgres://USER@HOST/NAME or
sqlite:FILE. PGPASSWORD has a password.
` + importText,
		},
		{
			name: "import files", operand: "LOCATION", operands: operands, connects: true,
			words: placed(TransferFiles, "s3://lake/warehouse"), validate: validateTransfer,
			summary: "tables in a folder without a catalog", settings: importing(),
			text: `Brings the tables below a folder into a warehouse: the tables of a Hadoop catalog, or of a lost
catalog. A table is a folder with a folder metadata in it, and its namespace is the path to it. Of its
metadata files the one with the greatest version counts. The server lists the folder, with the storage
of the warehouse.
` + importText,
		},
		{
			name: "import list", operand: "FILE|-", operands: operands, connects: true,
			words: placed(TransferList, "tables.csv"), validate: validateTransfer,
			summary: "tables in a list of metadata files", settings: importing(),
			text: `Brings the tables and views of a list into a warehouse. The list is CSV with the columns namespace,
name, kind and metadata-location, or has a JSON object with these members in each line. kind is table
or view. A single dash is the standard input.
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
					usage: "Confirms that nothing writes at the source any more.",
					set:   transferToggle(func(w *TransferWords) *bool { return &w.SourceFrozen })},
				setting{name: "detach", flagOnly: true,
					usage: "Remove each table from the source first, without its files, so that no commit can " +
						"follow. Only a database, or a REST catalog that can unregister, can do that.",
					set: transferToggle(func(w *TransferWords) *bool { return &w.Detach })})...),
			text: `Ends the mirrors of an import. Each mirror moves to the last metadata file of the source, is compared
with it, and is an ordinary table from then on. It takes the words and settings of the import. Stop
the writers at the source first and confirm that with --source-frozen, or use --detach.

A table that differs stays a mirror, and the command exits with 3. It can be repeated.
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
metadata-location, or with -o jsonl as JSON lines. moorage import list reads both.
`,
		},
		{
			name: "export rest", operand: "URI", operands: operands, words: placed(TransferREST, rest), connects: true,
			summary: "register all tables at another REST catalog", validate: validateStopped,
			settings: forChange(append(otherREST("target"), choosing()...)...),
			text: `Registers the tables and views of a warehouse at another catalog that speaks the Iceberg REST
protocol, with their namespaces, and compares them. No file is copied, and nothing changes here: stop the
writers first. It exits with 3 if something did not arrive, or differs.
`,
		},
		{
			name: "export dir", operand: "DIR", operands: operands, connects: true,
			words: placed(TransferDir, "./catalog"), summary: "write all names and locations into files",
			settings: forPeople(choosing()[:2]...),
			text: `Writes the namespaces with their properties, and the tables and views with their metadata files, into
a folder: a file of JSON for each. The folder must not exist, or be one that this command made: then
files of objects that are gone are removed. Equal catalogs give equal files, so it can be kept in git.
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
