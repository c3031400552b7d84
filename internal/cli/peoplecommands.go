package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Faults of words.
var (
	errNeedsFile     = errors.New("takes NAME FILE, such as sales.orders s3://lake/orders/metadata/v7.metadata.json")
	errNeedsProperty = errors.New("takes NAME K..., such as sales.orders write.format.default")
	errNeedsWords    = errors.New("takes words, such as order daily")
	errNeedsProfile  = errors.New("takes the NAME of a profile")
	errNeedsVersion  = errors.New("takes NAME VERSION, such as sales.orders now~1")
)

// findMax is how many names find can print.
const findMax = 200

// rowsMax is how many rows the command rows can print.
const rowsMax = 200

// The parts of a table that moorage show reads from its manifests.
const (
	PartFiles      = "files"
	PartPartitions = "partitions"
)

// Parts returns what moorage show can show of a table or view.
func Parts() []string {
	return []string{"schema", "snapshots", "refs", "props", PartFiles, PartPartitions, "json"}
}

const namesText = `
A name is [WAREHOUSE/]level.level.name. A level with a dot or a slash stands in double quotes. A
trailing dot means the namespace, and a single slash means all warehouses.
`

// beginCommands returns the commands with which a newcomer begins.
func beginCommands() []command {
	return []command{
		{
			name: "demo", summary: "a catalog with sample tables, here and now", validate: validateDemo,
			settings: []setting{
				{name: "data", value: "DIR", preset: "./moorage-demo", flagOnly: true,
					set:   folder(func(c *Config) *string { return &c.Data }),
					usage: "Folder for the demo. It is made if it does not exist."},
				{name: "listen", value: "HOST:PORT", preset: strings.TrimPrefix(DefaultURI, "http://"), flagOnly: true,
					usage: "Address to listen on. Without this flag the demo takes the next of ten ports if the " +
						"first is in use.",
					set: func(c *Config, v []string) (err error) {
						c.Listen, err = v[0], checkHostPort(v[0])
						return err
					}},
				{name: "no-browser", flagOnly: true, usage: "Do not open the console in a browser.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.NoBrowser })},
			},
			text: `Runs a catalog on this machine that has the sample tables ships, voyages and ports, and two views, in
the namespace harbour. It needs no network and no set-up, and asks its callers for no credentials.
It prints lines to paste, and on a terminal it opens the console in a browser, except over SSH and in
CI. The first start makes the tables; a later start with the same folder goes on with what is there.
The command refuses a folder that has other content. GET /readyz is 503 until the tables are there.
`,
		},
		{
			operands: []Operand{OperandEngine, OperandName},
			name:     "connect", operand: "[ENGINE] [TABLE]", words: wordsOfConnect, connects: true,
			summary: "what to type in Spark, Trino, DuckDB, PyIceberg, ...",
			settings: forPeople(setting{name: "write", value: "FILE", flagOnly: true,
				usage: "Write the lines to this file, which must not exist, instead of printing them.",
				set:   personText(func(w *PeopleWords) *string { return &w.File })}),
			text: `Prints what a user of an engine types to reach the catalog, and nothing else: curl, pyiceberg, spark,
trino, flink, duckdb or polars. Without an engine it prints the lines for all of them. With a table it
also prints how to read that.

The tests of Moorage run these lines, except those for Polars. Credentials of the storage stand as
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
			summary: "list what there is",
			settings: forPeople(
				setting{name: "long", short: "l", flagOnly: true,
					usage: "With rows, size, files and the last change of each table, its caller, and whether it is " +
						"protected or has labels.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Long })},
				setting{name: "recursive", short: "R", flagOnly: true, usage: "Also what is in namespaces below.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Recursive })},
				setting{name: "dropped", flagOnly: true, usage: "What was dropped, and until when it can come back.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Dropped })},
				setting{name: "kind", value: "table|view|namespace", flagOnly: true,
					usage: "Only objects of this kind.",
					set: one(oneOf("table", "view", "namespace"), "table, view or namespace",
						func(c *Config) *string { return &c.People.Kind })},
				setting{name: "sort", value: "name|size|rows|changed", preset: "name", flagOnly: true,
					usage: "Order. All but name mean --long, and put the largest or latest first.",
					set: one(oneOf("name", "size", "rows", "changed"), "name, size, rows or changed",
						func(c *Config) *string { return &c.People.Sort })}),
			text: `Lists what is in a namespace, or the namespaces of a warehouse. A dash is what the server does not
know yet: a table that was last changed by an older server has no summary until its next commit.
` + namesText,
		},
		{
			operands: []Operand{OperandName},
			name:     "tree", operand: "[NAME]", words: oneName(true, nil), connects: true,
			summary: "show namespaces with what is in them",
			settings: forPeople(setting{name: "depth", short: "L", value: "N", flagOnly: true,
				usage: "How many levels of namespaces to show. Default: all.",
				set:   one(parsePositive, "a number above 0", func(c *Config) *int { return &c.People.Depth })}),
			text: "Prints the namespaces of a warehouse, or below another one, with what is in them.\n" + namesText,
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
			text: `Prints the tables, views and namespaces of all warehouses whose names, with their namespaces,
have all words, the best first. Capital and small letters are the same. It exits with 3 if there are
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
			text: `Prints the first rows of a table, without the deleted ones. The server reads at most 5 data files.
If it cannot show the rows as they are, it says why. With -o jsonl each line is a row.
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
			text: `Prints what a table, a view or a namespace is: location, size, last change, refs and columns. PART is
schema, snapshots, refs, props or json, and prints only that. For files and partitions of a table the
server reads the manifests: how many files have which size, and the partitions with the most files
below 32 MB.
` + versionsText + namesText,
		},
	}
}

// DiffParts returns the parts of a table or view that moorage diff compares, in their order.
func DiffParts() []string {
	return []string{
		"format", "location", "sql", "names in", "schema", "partitions", "sort order", "properties", "refs",
		"snapshots",
	}
}

const versionsText = `
A version is now, now~N (N metadata files before it), the base name of a metadata file, a time such as
2026-11-27T03:12:00Z, a duration such as 2h, which means ago, or the id of a change that moorage history
prints, or its first digits.
`

// versionCommands returns the commands on the versions of tables and views.
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
			text: `Prints what differs from the version A of a table or view to its version B: by default now~1 and
now. Of a view it prints the SQL of each dialect.
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
					usage: "The snapshot need not be an ancestor of the branch's head.",
					set:   personToggle(func(w *PeopleWords) *bool { return &w.AnyState })},
				setting{name: "all", flagOnly: true,
					usage: "Also take back the schema, the partition spec, the sort order and the properties; of a " +
						"view the properties.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.All })}),
			text: `Takes a branch of a table back to an earlier version, with an ordinary commit. It prints what
changes, and asks. Nothing is deleted, and another rollback takes it back. VERSION can also be the id of a
snapshot, a branch or a tag.

Of a view an earlier version becomes the current one. VERSION can also be the id of a version in its
metadata. If the view has changed since the question, nothing is done.
` + versionsText + namesText,
		},
	}
}

// changeCommands returns the commands that change objects.
func changeCommands() []command {
	keep := setting{name: "keep", value: "DURATION", flagOnly: true,
		usage: "How long expiry of snapshots keeps the ref, such as 30d. Default: for good.",
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
			text: "Makes a namespace, with properties. The namespace above it must exist.\n" + namesText,
		},
		{
			operands: []Operand{OperandName},
			name:     "mv", operand: "NAME NEWNAME", words: wordsOfMove, connects: true,
			summary: "rename a table or view", settings: forChange(),
			text: `Renames a table or view, also into another namespace. Files do not move. A new name that ends in a
dot is a namespace, in which the object keeps its own name.
` + namesText,
		},
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "rm", operand: "NAME", words: oneName(false, nil), connects: true, validate: validateRemove,
			summary: "drop a table, a view or a namespace",
			settings: forRisk(
				setting{name: "recursive", short: "R", flagOnly: true,
					usage: "Drop a namespace with all that is in it.",
					set:   personToggle(func(w *PeopleWords) *bool { return &w.Recursive })},
				setting{name: "purge", flagOnly: true, usage: "Also delete the files of tables.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Purge })},
				setting{name: "dropped", flagOnly: true,
					usage: "End a dropped table or view before its time: with --purge or --forget.",
					set:   personToggle(func(w *PeopleWords) *bool { return &w.Dropped })},
				setting{name: "forget", flagOnly: true, usage: "With --dropped: leave the files where they are.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Forget })},
				dropID("With --dropped: the object with this id, of several with one name.")),
			text: `Drops a table, a view, or an empty namespace. It prints what the table has, and asks. With --purge
the name must be typed. Without a terminal it needs --yes.

A dropped table can come back, by moorage undrop, for the time that --undrop-window of the server
says. With --purge its files are deleted then. With --dropped the command ends that time now: --purge
deletes the files, and --forget leaves them.
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
			text: "Makes a table from its metadata file: a location that ends in .metadata.json.\n" + namesText,
		},
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "set", operand: "NAME K=V...", words: oneName(false, pairsOf(1)), connects: true,
			summary: "set properties", settings: forChange(),
			text: "Sets properties of an object, and prints what they were.\n" + namesText,
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
			text: "Removes properties of an object, and prints what they were.\n" + namesText,
		},
		{
			operands: []Operand{OperandName, OperandOther},
			name:     "label", operand: "NAME [FIELD:]LABEL=VALUE...", connects: true,
			words: oneName(false, func(w *PeopleWords, words []string) error {
				w.Words = words
				return nil
			}),
			summary: "set labels, which engines show",
			settings: forChange(setting{name: "unset", flagOnly: true, usage: "Remove the labels that are named.",
				set: personToggle(func(w *PeopleWords) *bool { return &w.Unset })}),
			text: `Sets labels of a table or view, or of one of its fields. Engines get them with each load. They are no
part of the metadata, and make no version of the table. Without labels the command prints the labels
that there are. FIELD is a column, such as price or address.city, or the id of a field. A label of the
table whose name has a colon begins with another colon.

  moorage label sales.orders team=billing customer:classification=pii
` + namesText,
		},
		{
			operands: []Operand{OperandName, OperandRef, OperandVersion},
			name:     "tag", operand: "TABLE NAME [VERSION]", words: wordsOfRef, connects: true,
			summary: "name a snapshot of a table", settings: forChange(remove, move, keep),
			text: `Makes a tag: a name for a snapshot. VERSION is the id of a snapshot, a branch or a tag, and by
default the branch main. Without --move the tag must not exist.
` + namesText,
		},
		{
			operands: []Operand{OperandName, OperandRef, OperandVersion},
			name:     "branch", operand: "TABLE NAME [VERSION]", words: wordsOfRef, connects: true,
			summary: "make a branch of a table", settings: forChange(remove, move, keep),
			text: `Makes a branch of a table, at a snapshot. VERSION is the id of a snapshot, a branch or a tag, and by
default the branch main. Without --move the branch must not exist. The branch main moves with moorage
rollback.
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
			text: `Sends one request to the server, with the caller's credentials, and prints the body of the answer. It
does not repeat the request. The exit code goes by the status.

  moorage api GET /v1/config?warehouse=default
`,
		},
		{
			name: "profile list", summary: "list the profiles", run: listProfiles,
			text: "Prints the profiles, with a star at the one in use. It prints no tokens.\n" + profileText,
		},
		{
			name: "profile use", operand: "NAME", words: profileName, summary: "choose a profile", run: useProfile,
			text: "Chooses the profile that commands use without --profile.\n" + profileText,
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
			text: `Makes or changes a profile: uri=, warehouse=, token=, token-command= or ca=. An empty value removes
the setting. The first profile is in use at once.

  moorage profile set prod uri=https://lake.example.com token-command="pass show lake"
` + profileText,
		},
		{
			name: "profile rm", operand: "NAME", words: profileName, summary: "remove a profile", run: removeProfile,
			text: "Removes a profile.\n" + profileText,
		},
		{
			name: "profile show", operand: "NAME", words: profileName, summary: "show a profile", run: showProfile,
			text: "Prints the settings of a profile. Of a token it prints only that there is one.\n" + profileText,
		},
	}
}

// validateDemo refuses an address that other machines reach.
func validateDemo(c Config, faults *usageError) {
	if !IsLoopback(c.Listen) {
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
