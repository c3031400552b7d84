package cli

import "errors"

// CodeWords are the words and settings of plan, apply and export.
type CodeWords struct {
	Files  []string
	Prune  bool
	GiveUp bool // --give-up-admin
	Schema bool
	AsCode bool
	Tables bool
}

// errNeedsFiles is the fault of words without a file.
var errNeedsFiles = errors.New("takes FILE..., YAML files or folders of them")

func codeToggle(field func(*CodeWords) *bool) func(*Config, []string) error {
	return toggle(func(c *Config) *bool { return field(&c.People.Code) })
}

const codeText = `
FILE is a YAML file, or a folder whose .yaml and .yml files are read, also those in folders below. The
guide "catalog as code" has the format. A secret is never in a file: it names an environment variable.

What only the server has stays, unless --prune removes it. No table or view is ever made or dropped,
and no namespace or warehouse that has one.
`

// codeCommands returns the commands for a catalog that is described in files.
func codeCommands() []command {
	files := func(c *Config, words []string) error {
		c.People.Code.Files = words
		return nil
	}
	prune := setting{name: "prune", flagOnly: true,
		usage: "Also remove what the server has and the files do not describe.",
		set:   codeToggle(func(w *CodeWords) *bool { return &w.Prune })}
	giveUp := setting{name: "give-up-admin", flagOnly: true,
		usage: "Permit that you lose your own right as an administrator of the server. That comes last.",
		set:   codeToggle(func(w *CodeWords) *bool { return &w.GiveUp })}
	needsFiles := func(c Config, faults *usageError) {
		validateStopped(c, faults)
		if len(c.People.Code.Files) == 0 && !c.People.Code.Schema {
			faults.addf("%s", errNeedsFiles)
		}
	}
	return []command{
		{
			operands: []Operand{OperandOther},
			name:     "plan", operand: "FILE...", words: files, connects: true, validate: needsFiles,
			summary: "what differs from files that describe it",
			settings: forPeople(prune, giveUp, setting{name: "schema", flagOnly: true,
				usage: "Print the JSON Schema of the files, for editors, and ask no server.",
				set:   codeToggle(func(w *CodeWords) *bool { return &w.Schema })}),
			text: `Prints what moorage apply would change so that the server has what the files describe: + is added,
- is removed, ~ is changed, from what it was to what it is. It changes nothing. It exits with 3 if
something differs. Missing secrets come first.
` + codeText,
		},
		{
			operands: []Operand{OperandOther},
			name:     "apply", operand: "FILE...", words: files, connects: true, validate: needsFiles,
			summary: "change what differs from the files",
			settings: forPeople(prune, giveUp,
				setting{name: "dry-run", flagOnly: true, usage: "Print the steps in their order, and make none.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.DryRun })},
				setting{name: "yes", short: "y", flagOnly: true, usage: "Do not ask.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Yes })}),
			text: `Prints the plan, asks, and makes its steps, each with a line. It first adds and then removes, so that
you keep your rights as long as you need them. It refuses a plan that takes your own right as an
administrator of the server. It makes nothing while a secret is missing.

Before each step it looks whether the object is still as it was; if not, it ends with 4. It can be
repeated after any end, and does only the rest.
` + codeText,
		},
		{
			name: "export", connects: true, summary: "write what there is, to move or keep it",
			settings: forPeople(
				setting{name: "as-code", flagOnly: true,
					usage: "As a YAML file for moorage plan and moorage apply.",
					set:   codeToggle(func(w *CodeWords) *bool { return &w.AsCode })},
				setting{name: "tables", flagOnly: true,
					usage: "With --as-code: also the properties of tables and views.",
					set:   codeToggle(func(w *CodeWords) *bool { return &w.Tables })}),
			validate: func(c Config, faults *usageError) {
				validateStopped(c, faults)
				if !c.People.Code.AsCode {
					faults.addf("export: what to write must be said: --as-code")
				}
			},
			text: `Prints warehouses, namespaces, roles, grants, owners, maintenance policies, and the tables and views
that have settings of their own, as a file for moorage plan. Equal catalogs are equal files. For each
secret of a storage the file names an environment variable. Without access control there are no
roles and grants. With it the command takes admin.

  moorage export --as-code > catalog.yaml
`,
		},
	}
}
