package cli

import (
	"errors"
	"regexp"
	"strconv"
)

// errNeedsObject is the fault of moorage history without an object.
var errNeedsObject = errors.New("history: name an object, such as sales.orders, or give its --id")

// objectID matches the id of an object.
var objectID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// historyCommand returns the command that prints the changes of one object.
func historyCommand() command {
	return command{
		operands: []Operand{OperandName},
		name:     "history", operand: "[NAME]", words: oneName(true, nil), connects: true,
		validate: func(c Config, faults *usageError) {
			w := c.People
			switch {
			case w.ID == "" && len(w.Name.Levels) == 0:
				faults.addf("%s", errNeedsObject)
			case w.ID != "" && !objectID.MatchString(w.ID):
				faults.addf("--id: %q is not 32 hexadecimal digits", w.ID)
			}
		},
		summary: "show the changes of a table, a view or a namespace",
		settings: forPeople(
			setting{name: "lines", short: "n", value: "NUMBER", preset: "20", flagOnly: true,
				usage: "How many of the last changes to print, up to 1000.",
				set: one(within(strconv.Atoi, 1, 1000), "a number from 1 to 1000",
					func(c *Config) *int { return &c.People.Tail })},
			setting{name: "all", flagOnly: true,
				usage: "Print all changes, and also older versions whose changes are no longer kept.",
				set:   personToggle(func(w *PeopleWords) *bool { return &w.All })},
			setting{name: "id", value: "ID", flagOnly: true,
				usage: "Id of the object, which stays the same through renames and drops.",
				set:   personText(func(w *PeopleWords) *string { return &w.ID })},
			setting{name: "graph", flagOnly: true,
				usage: "Print the snapshots of a table instead, with their branches, as a graph.",
				set:   personToggle(func(w *PeopleWords) *bool { return &w.Graph })}),
		text: `Prints the changes of a table, a view or a namespace, the latest first. Each line has the version,
how long ago it was made, the caller, the effect, and the id of the change. The name means the
object that has it now, or otherwise the last one that had it. So the command also shows the caller
that dropped a table, and how the table can come back.

The server keeps changes as long as its --change-retention says. The times of older versions come
from the table's own log. moorage diff and moorage rollback accept both the version and the id.
` + namesText,
	}
}
