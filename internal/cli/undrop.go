package cli

import "errors"

// errNeedsDropped is the fault of a command line without a dropped object.
var errNeedsDropped = errors.New("takes a NAME, such as sales.orders, or --id")

// dropID returns the flag for the id of a dropped object.
func dropID(usage string) setting {
	return setting{name: "id", value: "ID", flagOnly: true, usage: usage,
		set: personText(func(w *PeopleWords) *string { return &w.ID })}
}

// undropCommand returns the command that brings dropped objects back.
func undropCommand() command {
	return command{
		operands: []Operand{OperandName},
		name:     "undrop", operand: "[NAME]", words: oneName(true, nil), connects: true, validate: validateUndrop,
		summary: "bring back a dropped table or view",
		settings: forRisk(
			setting{name: "as", value: "NAME", flagOnly: true, usage: "New name for the object.",
				set: func(c *Config, v []string) (err error) {
					c.People.To, err = ParseName(v[0])
					return err
				}},
			setting{name: "replace", flagOnly: true,
				usage: "First drop the live table or view that has the name. That one can also come back later.",
				set:   personToggle(func(w *PeopleWords) *bool { return &w.Replace })},
			setting{name: "make-namespace", flagOnly: true,
				usage: "Create the namespace again if it is gone, with its former properties.",
				set:   personToggle(func(w *PeopleWords) *bool { return &w.MakeNamespace })},
			dropID("Id of the object, if several had the same name."),
			setting{name: "recursive", short: "R", flagOnly: true,
				usage: "Bring back everything that was dropped in this namespace and in the namespaces inside it.",
				set:   personToggle(func(w *PeopleWords) *bool { return &w.Recursive })},
			setting{name: "since", value: "TIME", flagOnly: true,
				usage: "With -R: only what was dropped since a time such as 2026-11-21T10:00:00Z, or since 2h ago.",
				set:   personText(func(w *PeopleWords) *string { return &w.Since })},
			setting{name: "by", value: "CALLER", list: true, flagOnly: true,
				usage: "With -R: only what this caller dropped. May be repeated.",
				set: func(c *Config, v []string) error {
					c.People.Callers = v
					return nil
				}}),
		text: `Brings back a dropped table or view, with its files, grants, labels and maintenance. If several had
the same name, the last one that was dropped comes back. moorage ls --dropped lists them all, and
--id selects another. If a purge of the object is waiting, it is cancelled.

With -R, it brings back everything that was dropped in a namespace, 16 objects at a time. You can
run the same command again.
` + namesText,
	}
}

// protectCommand returns the command that protects objects.
func protectCommand() command {
	return command{
		operands: []Operand{OperandName},
		name:     "protect", operand: "NAME", words: oneName(false, nil), connects: true,
		validate: validateStopped, summary: "refuse drops of an object",
		settings: forChange(setting{name: "off", flagOnly: true, usage: "End the protection.",
			set: personToggle(func(w *PeopleWords) *bool { return &w.Off })}),
		text: `Protects a table, a view, a namespace or a warehouse. Until the protection ends, neither the object
nor anything in it can be dropped, purged, unregistered, overwritten by a register, or moved out of
its namespace. Commits and the expiry of snapshots still work. After the first protection in a
store, servers of version 0.1.0 no longer run on that store.
` + namesText,
	}
}

// validateUndrop refuses flags that do not go together.
func validateUndrop(c Config, faults *usageError) {
	w := c.People
	validateStopped(c, faults)
	validateChanges(c, faults)
	switch {
	case !w.Recursive && len(w.Name.Levels) == 0 && w.ID == "":
		faults.addf("undrop: %s", errNeedsDropped)
	case !w.Recursive && (w.Since != "" || len(w.Callers) > 0):
		faults.addf("undrop: --since and --by go with -R")
	case w.Recursive && (w.ID != "" || len(w.To.Levels) > 0):
		faults.addf("undrop: --id and --as name one object, and -R means many")
	}
}

// validateRemove refuses flags that do not go together.
func validateRemove(c Config, faults *usageError) {
	w := c.People
	validateStopped(c, faults)
	switch {
	case w.Dropped && w.Purge == w.Forget:
		faults.addf("rm: --dropped takes either --purge or --forget")
	case w.Dropped && w.Recursive:
		faults.addf("rm: --dropped takes one table or view, without -R")
	case !w.Dropped && (w.Forget || w.ID != ""):
		faults.addf("rm: --forget and --id go with --dropped")
	}
}
