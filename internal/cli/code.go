package cli

import "errors"

// CodeWords are the operands and settings of plan, apply and export.
type CodeWords struct {
	Files  []string
	Prune  bool
	GiveUp bool // --give-up-admin
	Schema bool
	AsCode bool
	Tables bool
}

// errNeedsFiles is the fault of a command line without a file.
var errNeedsFiles = errors.New("takes FILE..., YAML files or folders of them")

func codeToggle(field func(*CodeWords) *bool) func(*Config, []string) error {
	return toggle(func(c *Config) *bool { return field(&c.People.Code) })
}

const codeText = `
FILE is a YAML file, or a folder. In a folder, the command reads all .yaml and .yml files, including
those in subfolders. The guide "catalog as code" describes the format. A file never contains a
secret, only the name of an environment variable.

Objects that exist only on the server stay, unless --prune removes them. The command never creates
or drops a table or view, and never drops a namespace or warehouse that contains one.
`

// codeCommands returns the commands for catalogs that are described in files.
func codeCommands() []command {
	files := func(c *Config, words []string) error {
		c.People.Code.Files = words
		return nil
	}
	prune := setting{name: "prune", flagOnly: true,
		usage: "Also remove objects on the server that the files do not describe.",
		set:   codeToggle(func(w *CodeWords) *bool { return &w.Prune })}
	giveUp := setting{name: "give-up-admin", flagOnly: true,
		usage: "Allow the plan to take away your own right as an administrator of the server. That step comes " +
			"last.",
		set: codeToggle(func(w *CodeWords) *bool { return &w.GiveUp })}
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
			summary: "compare the catalog with files that describe it",
			settings: forPeople(prune, giveUp, setting{name: "schema", flagOnly: true,
				usage: "Print the JSON Schema of the files, for editors, without calling a server.",
				set:   codeToggle(func(w *CodeWords) *bool { return &w.Schema })}),
			text: `Prints the changes that moorage apply would make so that the server matches the files. In the
output, + is added, - is removed, and ~ is changed, with the former and the new value. The command
changes nothing. The exit code is 3 if something differs. Missing secrets are printed first.
` + codeText,
		},
		{
			operands: []Operand{OperandOther},
			name:     "apply", operand: "FILE...", words: files, connects: true, validate: needsFiles,
			summary: "change the catalog to match the files",
			settings: forPeople(prune, giveUp,
				setting{name: "dry-run", flagOnly: true, usage: "Print the steps in their order, without making " +
					"them.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.DryRun })},
				setting{name: "yes", short: "y", flagOnly: true, usage: "Do not ask.",
					set: personToggle(func(w *PeopleWords) *bool { return &w.Yes })}),
			text: `Prints the plan, asks, and makes its steps, with a line for each. It adds first and removes
afterwards, so that you keep your rights as long as you need them. It refuses a plan that would take
away your own right as an administrator of the server. While a secret is missing, it makes no step.

Before each step, it checks that the object is still as the plan found it. If not, it stops with
exit code 4. You can always run the command again: it makes only the steps that are left.
` + codeText,
		},
		{
			name: "export", connects: true, summary: "write the catalog to a file, to move or keep it",
			settings: forPeople(
				setting{name: "as-code", flagOnly: true,
					usage: "Print a YAML file for moorage plan and moorage apply.",
					set:   codeToggle(func(w *CodeWords) *bool { return &w.AsCode })},
				setting{name: "tables", flagOnly: true,
					usage: "With --as-code: also print the properties of tables and views.",
					set:   codeToggle(func(w *CodeWords) *bool { return &w.Tables })}),
			validate: func(c Config, faults *usageError) {
				validateStopped(c, faults)
				if !c.People.Code.AsCode {
					faults.addf("export: what to write must be said: --as-code")
				}
			},
			text: `Prints warehouses, namespaces, roles, grants, owners and maintenance policies, as a file for moorage
plan. Tables and views are included if they have settings of their own. Equal catalogs give equal
files. In place of each storage secret, the file names an environment variable. Without access
control, there are no roles and grants. With access control, the command needs the privilege admin.

  moorage export --as-code > catalog.yaml
`,
		},
	}
}
