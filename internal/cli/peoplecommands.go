package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage/internal/loopback"
)

// Faults of operands.
var (
	errNeedsFile     = errors.New("takes NAME FILE, such as sales.orders s3://lake/orders/metadata/v7.metadata.json")
	errNeedsProperty = errors.New("takes NAME K..., such as sales.orders write.format.default")
	errNeedsWords    = errors.New("takes words, such as order daily")
	errNeedsProfile  = errors.New("takes the NAME of a profile")
	errNeedsVersion  = errors.New("takes NAME VERSION, such as sales.orders now~1")
)

// findMax is the maximum number of names that find prints.
const findMax = 200

// rowsMax is the maximum number of rows that moorage rows prints.
const rowsMax = 200

// The parts of a table that moorage show takes from its manifests.
const (
	PartFiles      = "files"
	PartPartitions = "partitions"
)

// Parts returns the parts of a table or view that moorage show can print.
func Parts() []string {
	return []string{"schema", "snapshots", "refs", "props", PartFiles, PartPartitions, "json"}
}

const namesText = `
A name has the form [WAREHOUSE/]level.level.name. Put a level that contains a dot or a slash in
double quotes. A trailing dot means a namespace, and a single slash means all warehouses.
`

// beginCommands returns the commands for newcomers.
func beginCommands() []command {
	return []command{
		{
			name: "demo", summary: "a catalog with sample tables, here and now", validate: validateDemo,
			settings: []setting{
				{name: "data", value: "DIR", preset: "./moorage-demo", flagOnly: true,
					set:   folder(func(c *Config) *string { return &c.Data }),
					usage: "Folder for the demo. It is created if it does not exist."},
				{name: "listen", value: "HOST:PORT", preset: strings.TrimPrefix(DefaultURI, "http://"), flagOnly: true,
					usage: "Address to listen on. Without this flag, the demo tries the next ports, up to ten, " +
						"if the first is in use.",
					set: func(c *Config, v []string) (err error) {
						c.Listen, err = v[0], checkHostPort(v[0])
						return err
					}},
				{name: "no-browser", flagOnly: true, usage: "Do not open the console in a browser.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.NoBrowser })},
			},
			text: `Runs a catalog on this machine. It has the sample tables ships, voyages and ports, and two views, in
the namespace harbour. It needs no network and no set-up, and requires no credentials. The command
prints lines to paste. On a terminal, it opens the console in a browser, except over SSH and in CI.
The first start creates the tables; a later start with the same folder keeps what is there. The
command refuses a folder with other content. GET /readyz gets 503 until the tables exist.
`,
		},
		{
			operands: []Operand{OperandEngine, OperandName},
			name:     "connect", operand: "[ENGINE] [TABLE]", words: wordsOfConnect, connects: true,
			summary: "what to type in Spark, Trino, DuckDB, PyIceberg, ...",
			settings: forPeople(setting{name: "write", value: "FILE", flagOnly: true,
				usage: "Write the lines to this file, which must not exist, instead of printing them.",
				set:   personText(func(w *PeopleWords) *string { return &w.File })}),
			text: `Prints the lines with which an engine connects to the catalog, and nothing else. ENGINE is curl,
pyiceberg, spark, trino, flink, duckdb or polars; without it, the command prints the lines for all
of them. With a table, it also prints how to read that table.

Moorage's tests run these lines, except those for Polars. Credentials for the storage are shown as
dots, and credentials of the caller as KEY or TOKEN.
`,
		},
	}
}

// lookCommands returns the commands that show objects.
func lookCommands() []command {
	return []command{
		changesCommand(),
		historyCommand(),
		healthCommand(),
		topCommand(),
		{
			operands: []Operand{OperandName},
			name:     "ls", operand: "[NAME]", words: oneName(true, nil), connects: true,
			summary: "list namespaces, tables and views",
			settings: forPeople(
				setting{name: "long", short: "l", flagOnly: true,
					usage: "Also print rows, size, files and the last change of each table, with its caller, and " +
						"whether the table is protected or has labels.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Long })},
				setting{name: "recursive", short: "R", flagOnly: true, usage: "Also list the contents of nested " +
					"namespaces.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Recursive })},
				setting{name: "dropped", flagOnly: true, usage: "List dropped tables and views, and until when " +
					"each can come back.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Dropped })},
				setting{name: "kind", value: "table|view|namespace", flagOnly: true,
					usage: "Only objects of this kind.",
					set: one(oneOf("table", "view", "namespace"), "table, view or namespace",
						func(c *Config) *string { return &c.People.Kind })},
				setting{name: "sort", value: "name|size|rows|changed", preset: "name", flagOnly: true,
					usage: "Order of the list. Except for name, it implies --long, and the largest or latest " +
						"comes first.",
					set: one(oneOf("name", "size", "rows", "changed"), "name, size, rows or changed",
						func(c *Config) *string { return &c.People.Sort })}),
			text: `Lists the contents of a namespace, or the namespaces of a warehouse. A dash means that the server
does not know the value yet: a table that was last changed by an older server has no summary until
its next commit.
` + namesText,
		},
		{
			operands: []Operand{OperandName},
			name:     "tree", operand: "[NAME]", words: oneName(true, nil), connects: true,
			summary: "show namespaces with their contents",
			settings: forPeople(setting{name: "depth", short: "L", value: "N", flagOnly: true,
				usage: "How many levels of namespaces to show. Default: all.",
				set:   one(parsePositive, "a number above 0", func(c *Config) *int { return &c.People.Depth })}),
			text: "Prints the namespaces in a warehouse or in another namespace, with their contents, as a tree.\n" +
				namesText,
		},
		{
			operands: []Operand{OperandOther},
			name:     "find", operand: "WORDS", connects: true, summary: "search all names",
			words: func(c *Config, words []string) error {
				if c.People.Words = words; len(words) == 0 {
					return errNeedsWords
				}
				return nil
			},
			settings: forPeople(
				setting{name: "limit", short: "n", value: "N", flagOnly: true,
					usage: "How many names to print. Default: 50.",
					set: one(within(strconv.Atoi, 1, findMax), "a number from 1 to 200",
						func(c *Config) *int { return &c.People.Limit })},
				setting{name: "kind", value: "table|view|namespace", flagOnly: true,
					usage: "Only objects of this kind.",
					set: one(oneOf("table", "view", "namespace"), "table, view or namespace",
						func(c *Config) *string { return &c.People.Kind })}),
			text: `Searches all warehouses, and prints the tables, views and namespaces whose full names contain all
WORDS, the best matches first. Upper and lower case are the same. The exit code is 3 if there are
none.
`,
		},
		{
			operands: []Operand{OperandName},
			name:     "rows", operand: "TABLE", connects: true, words: oneName(false, nil),
			summary: "show the first rows of a table",
			settings: forPeople(
				setting{name: "limit", short: "n", value: "N", flagOnly: true,
					usage: "How many rows to print. Default: 20.",
					set: one(within(strconv.Atoi, 1, rowsMax), "a number from 1 to 200",
						func(c *Config) *int { return &c.People.Limit })},
				setting{name: "ref", value: "NAME", flagOnly: true, usage: "Branch or tag. Default: main.",
					set: personText(func(w *PeopleWords) *string { return &w.Ref })}),
			text: `Prints the first rows of a table, without deleted rows. The server reads at most 5 data files. If it
cannot show correct rows, it says why. With -o jsonl, each line is a row.
` + namesText,
		},
		{
			operands: []Operand{OperandName, OperandPart},
			name:     "show", operand: "NAME [PART]", connects: true,
			words: oneName(false, atMost(1, "NAME [PART]", func(w *PeopleWords, words []string) {
				if len(words) > 0 {
					w.Part = words[0]
				}
			})),
			validate: validateShow, summary: "show one table or view",
			settings: forPeople(setting{name: "at", value: "VERSION", flagOnly: true,
				usage: "The version of a table or view to show. Default: now.",
				set:   personText(func(w *PeopleWords) *string { return &w.Version })}),
			text: `Prints the location, size, last change, refs and columns of a table, a view or a namespace. With
PART, it prints only that part: schema, snapshots, refs, props, json, files or partitions. For files
and partitions of a table, the server reads the manifests. files is the number of files by size, and
partitions lists the partitions with the most files below 32 MB.
` + versionsText + namesText,
		},
	}
}

// DiffParts returns the parts of a table or view that moorage diff compares, in the order of its
// output.
func DiffParts() []string {
	return []string{
		"format", "location", "sql", "names in", "schema", "partitions", "sort order", "properties", "refs",
		"snapshots",
	}
}

const versionsText = `
A version is one of these: now; now~N (N metadata files before now); the base name of a metadata
file; a time such as 2026-11-27T03:12:00Z; a duration such as 2h, which means that long ago; the id
of a change, as moorage history prints it, or the first digits of the id.
`

// versionCommands returns the commands about versions of tables and views.
func versionCommands() []command {
	return []command{
		{
			operands: []Operand{OperandName, OperandVersion},
			name:     "diff", operand: "NAME [A [B]]", connects: true,
			words: oneName(false, atMost(2, "NAME [A [B]]", func(w *PeopleWords, words []string) {
				w.Older, w.Version = "now~1", "now"
				if len(words) > 0 {
					w.Older = words[0]
				}
				if len(words) > 1 {
					w.Version = words[1]
				}
			})),
			summary: "compare two versions of a table or view",
			settings: forPeople(
				setting{name: "exit-code", flagOnly: true, usage: "Exit with 3 if the versions differ.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.ExitCode })},
				setting{name: "only", value: "PART", flagOnly: true,
					usage: "Print only one part: " + strings.Join(DiffParts(), ", ") + ".",
					set: one(oneOf(DiffParts()...), "one of "+strings.Join(DiffParts(), ", "),
						func(c *Config) *string { return &c.People.Only })}),
			text: `Prints the differences from version A of a table or view to version B. The defaults are now~1 and
now. For a view, it prints the SQL of each dialect.
` + versionsText + namesText,
		},
		{
			operands: []Operand{OperandName, OperandVersion},
			name:     "rollback", operand: "NAME VERSION", connects: true,
			words: oneName(false, func(w *PeopleWords, words []string) error {
				if len(words) != 1 {
					return errNeedsVersion
				}
				w.Version = words[0]
				return nil
			}),
			summary: "take a table or view back to an earlier version",
			settings: forRisk(
				setting{name: "ref", value: "NAME", flagOnly: true, usage: "Branch of a table to move. Default: main.",
					set: personText(func(w *PeopleWords) *string { return &w.Ref })},
				setting{name: "any", flagOnly: true,
					usage: "Allow a snapshot that is not an ancestor of the branch's head.",
					set:   personToggle(func(w *PeopleWords) *bool { return &w.AnyState })},
				setting{name: "all", flagOnly: true,
					usage: "Also restore the schema, the partition spec, the sort order and the properties; for " +
						"a view, the properties.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.All })}),
			text: `Moves a branch of a table back to an earlier version, with an ordinary commit. The command prints
the changes, and asks before it makes them. It deletes nothing, and another rollback undoes it.
VERSION can also be the id of a snapshot, a branch or a tag.

For a view, an earlier version becomes the current one. VERSION can also be the id of a version in
the view's metadata. If the view changes before you answer, the command changes nothing.
` + versionsText + namesText,
		},
	}
}

// changeCommands returns the commands that change objects.
func changeCommands() []command {
	keep := setting{name: "keep", value: "DURATION", flagOnly: true,
		usage: "How long the ref is safe from the expiry of snapshots, such as 30d. Default: forever.",
		set:   one(parseDuration, "a duration such as 30d", func(c *Config) *time.Duration { return &c.People.Keep })}
	move := setting{name: "move", flagOnly: true, usage: "Move the ref if it exists.",
		set: personToggle(func(w *PeopleWords) *bool { return &w.Move })}
	remove := setting{name: "delete", short: "d", flagOnly: true, usage: "Remove the ref.",
		set: personToggle(func(w *PeopleWords) *bool { return &w.Delete })}
	return []command{
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "mk", operand: "NAMESPACE [K=V...]", words: oneName(false, pairsOf(0)), connects: true,
			summary: "make a namespace", settings: forChange(),
			text: "Creates a namespace, with properties. Its parent namespace must exist.\n" + namesText,
		},
		{
			operands: []Operand{OperandName},
			name:     "mv", operand: "NAME NEWNAME", words: wordsOfMove, connects: true,
			summary: "rename a table or view", settings: forChange(),
			text: `Renames a table or view, possibly into another namespace. Files do not move. A new name that ends in
a dot is a namespace: the object moves there and keeps its own name.
` + namesText,
		},
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "rm", operand: "NAME", words: oneName(false, nil), connects: true, validate: validateRemove,
			summary: "drop a table, a view or a namespace",
			settings: forRisk(
				setting{name: "recursive", short: "R", flagOnly: true,
					usage: "Drop a namespace with everything in it.",
					set:   personToggle(func(w *PeopleWords) *bool { return &w.Recursive })},
				setting{name: "purge", flagOnly: true, usage: "Also delete the files of tables.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Purge })},
				setting{name: "dropped", flagOnly: true,
					usage: "Remove a dropped table or view for good, before its time. Needs --purge or --forget.",
					set:   personToggle(func(w *PeopleWords) *bool { return &w.Dropped })},
				setting{name: "forget", flagOnly: true, usage: "With --dropped: leave the files where they are.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Forget })},
				dropID("With --dropped: the id of the object, if several had the same name.")),
			text: `Drops a table, a view, or an empty namespace. It prints what the drop would remove, and asks. With
--purge, you must type the name. Without a terminal, the command needs --yes.

moorage undrop can bring a dropped table back for as long as the server's --undrop-window. With
--purge, the table's files are deleted after that time. With --dropped, the command ends that time
now: --purge deletes the files, and --forget leaves them.
` + namesText,
		},
		undropCommand(),
		protectCommand(),
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "register", operand: "NAME FILE", connects: true,
			words: oneName(false, func(w *PeopleWords, words []string) error {
				if len(words) != 1 {
					return errNeedsFile
				}
				w.File = words[0]
				return nil
			}),
			summary: "make a table from a metadata file",
			settings: forChange(setting{name: "replace", flagOnly: true, usage: "Replace the table if it exists.",
				set: personToggle(func(w *PeopleWords) *bool { return &w.Replace })}),
			text: "Makes a table from its metadata file. FILE is a location that ends in .metadata.json.\n" +
				namesText,
		},
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "set", operand: "NAME K=V...", words: oneName(false, pairsOf(1)), connects: true,
			summary: "set properties", settings: forChange(),
			text: "Sets properties of an object, and prints their former values.\n" + namesText,
		},
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "unset", operand: "NAME K...", connects: true,
			words: oneName(false, func(w *PeopleWords, words []string) error {
				if w.Words = words; len(words) == 0 {
					return errNeedsProperty
				}
				return nil
			}),
			summary: "remove properties", settings: forChange(),
			text: "Removes properties of an object, and prints their former values.\n" + namesText,
		},
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "label", operand: "NAME [FIELD:]LABEL=VALUE...", connects: true,
			words: oneName(false, func(w *PeopleWords, words []string) error {
				w.Words = words
				return nil
			}),
			summary: "set labels, which engines show",
			settings: forChange(setting{name: "unset", flagOnly: true, usage: "Remove the named labels.",
				set: personToggle(func(w *PeopleWords) *bool { return &w.Unset })}),
			text: `Sets labels of a table or view, or of one of its fields. Engines get the labels with each load.
Labels are not part of the metadata, and setting them does not create a version of the table.
Without labels, the command prints the existing ones. FIELD is a column, such as price or
address.city, or the id of a field. If the name of a table's label contains a colon, put another
colon in front.

  moorage label sales.orders team=billing customer:classification=pii
` + namesText,
		},
		{
			operands: []Operand{OperandName, OperandRef, OperandVersion},
			name:     "tag", operand: "TABLE NAME [VERSION]", words: wordsOfRef, connects: true,
			summary: "name a snapshot of a table", settings: forChange(remove, move, keep),
			text: `Creates a tag, which is a name for a snapshot. VERSION is the id of a snapshot, a branch or a tag.
The default is the branch main. Without --move, the tag must not exist.
` + namesText,
		},
		{
			operands: []Operand{OperandName, OperandRef, OperandVersion},
			name:     "branch", operand: "TABLE NAME [VERSION]", words: wordsOfRef, connects: true,
			summary: "make a branch of a table", settings: forChange(remove, move, keep),
			text: `Creates a branch of a table, at a snapshot. VERSION is the id of a snapshot, a branch or a tag. The
default is the branch main. Without --move, the branch must not exist. To move the branch main, use
moorage rollback.
` + namesText,
		},
	}
}

// toolCommands returns the commands for scripts, and for the command line itself.
func toolCommands() []command {
	profileName := func(c *Config, words []string) error {
		if len(words) != 1 {
			return errNeedsProfile
		}
		c.People.Profile = words[0]
		return nil
	}
	return []command{
		{
			name: "api", operand: "METHOD PATH", words: wordsOfAPI, connects: true, summary: "send one request",
			settings: forPeople(
				setting{name: "body", short: "d", value: "JSON|@FILE", flagOnly: true, usage: "Body of the request.",
					set: personText(func(w *PeopleWords) *string { return &w.Body })},
				setting{name: "header", short: "H", value: "NAME:VALUE", list: true, flagOnly: true,
					usage: "Header of the request. May be repeated.",
					set: func(c *Config, v []string) error {
						c.People.Headers = v
						return nil
					}}),
			text: `Sends one request to the server, with the caller's credentials, and prints the body of the answer.
It does not retry the request. The exit code depends on the status.

  moorage api GET /v1/config?warehouse=default
`,
		},
		{
			name: "profile list", summary: "list the profiles", run: listProfiles,
			text: "Prints the profiles, and marks the one in use with a star. It prints no tokens.\n" + profileText,
		},
		{
			name: "profile use", operand: "NAME", words: profileName, summary: "choose a profile", run: useProfile,
			text: "Chooses the profile that commands without --profile use.\n" + profileText,
		},
		{
			name: "profile set", operand: "NAME K=V...", summary: "make or change a profile", run: setProfile,
			words: func(c *Config, words []string) error {
				if len(words) < 2 {
					return errNeedsProfile
				}
				c.People.Profile = words[0]
				return pairsOf(1)(&c.People, words[1:])
			},
			text: `Creates or changes a profile. The settings are uri=, warehouse=, token=, token-command= and ca=. An
empty value removes a setting. The first profile is in use at once.

  moorage profile set prod uri=https://lake.example.com token-command="pass show lake"
` + profileText,
		},
		{
			name: "profile rm", operand: "NAME", words: profileName, summary: "remove a profile", run: removeProfile,
			text: "Removes a profile.\n" + profileText,
		},
		{
			name: "profile show", operand: "NAME", words: profileName, summary: "show a profile", run: showProfile,
			text: "Prints the settings of a profile. Of a token, it prints only whether there is one.\n" + profileText,
		},
	}
}

// validateDemo refuses an address that other machines can reach.
func validateDemo(c Config, faults *usageError) {
	if !loopback.Is(c.Listen) {
		faults.addf("--listen: the demo asks for no credentials, so it listens on loopback only")
	}
}

func validateShow(c Config, faults *usageError) {
	validateStopped(c, faults)
	if part := c.People.Part; (part == PartFiles || part == PartPartitions) && c.People.Version != "" {
		faults.addf("show: %s are of the present version, without --at", part)
	}
	if part := c.People.Part; part != "" && !slices.Contains(Parts(), part) {
		faults.addf("show: %q is not one of %s%s", part, strings.Join(Parts(), ", "), didYouMean("", part, Parts()))
	}
}
