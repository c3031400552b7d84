package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PeopleWords are the operands and settings of the commands for people. A command sets only the
// fields for the operands and flags in its help.
type PeopleWords struct {
	Name    Name // the object
	To      Name // mv: the new name. undrop: --as
	Part    string
	Engine  string
	Words   []string          // names of properties to remove
	Pairs   map[string]string // properties to set
	Ref     string            // tag, branch: the name of the ref. rollback: --ref
	Version string            // a version or a snapshot, as typed; empty for none
	Older   string            // diff: the version to compare with
	File    string            // register: the metadata file. connect: --write

	Method, Path string // api
	Body         string
	Headers      []string

	Profile string // profile set, use, rm, show: the name of the profile

	Code CodeWords // plan, apply, export

	Warehouse string // --warehouse: the warehouse of names that have none
	Output    string // one of Outputs
	Color     string
	NoPager   bool
	Quiet     bool
	NoBrowser bool // of demo
	Yes       bool
	DryRun    bool

	Unset bool // label: remove the labels
	Limit int  // find; zero for the server's default

	Long, Recursive, Purge, Replace, Delete, Move, AnyState, All, ExitCode bool
	Dropped, Forget, MakeNamespace, Off                                    bool
	Kind, Sort, Only                                                       string

	Deep   bool
	Every  time.Duration // top; zero to print once
	FailOn string        // one of FailOnWarn, FailOnBad and FailOnNever
	ID     string        // history, undrop, rm --dropped: --id
	Graph  bool          // history: --graph

	Follow              bool
	State, Since        string // changes: --state and --since. undrop: --since
	Operations, Callers []string
	Tail                int // changes: -n
	Depth               int
	Keep                time.Duration
}

// The values of --output.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputJSON  = "json"
	OutputLines = "jsonl"
	OutputNames = "name"
)

// Outputs returns the values of --output.
func Outputs() []string {
	return []string{OutputTable, OutputWide, OutputJSON, OutputLines, OutputNames}
}

// DefaultURI is the server that commands for people call by default.
const DefaultURI = "http://127.0.0.1:8181"

// personText is text for a field of c.People.
func personText(field func(*PeopleWords) *string) func(*Config, []string) error {
	return text(func(c *Config) *string { return field(&c.People) })
}

func personToggle(field func(*PeopleWords) *bool) func(*Config, []string) error {
	return toggle(func(c *Config) *bool { return field(&c.People) })
}

// forPeople returns the settings of a command for people. It puts the command's own settings first.
func forPeople(own ...setting) []setting {
	stopped := storeSettings()[1:] // without --config
	for i := range stopped {
		stopped[i].preset, stopped[i].flagOnly = "", true
		stopped[i].usage = map[string]string{
			"data":  "Open the store of a stopped server, in this folder, instead of calling a server.",
			"store": "Open the store of a stopped server instead of calling a server.",
		}[stopped[i].name]
	}
	server := askedServer("Address of the server to call. Default: the address in the profile, or else " +
		DefaultURI + ".")
	return slices.Concat(own, []setting{
		server, token(), authority(),
		{name: "profile", value: "NAME", usage: "Profile to use; see moorage profile.",
			set: personText(func(w *PeopleWords) *string { return &w.Profile })},
		{name: "warehouse", short: "w", value: "NAME",
			usage: "Warehouse of names that have none. Default: the warehouse in the profile, or else the one " +
				"called default.",
			set: personText(func(w *PeopleWords) *string { return &w.Warehouse })},
		{name: "output", short: "o", value: strings.Join(Outputs(), "|"), preset: OutputTable, flagOnly: true,
			usage: "Format of the output. table is cut to the width of the terminal, and wide is not. json " +
				"prints the server's answer, jsonl one line for each object, and name only the names.",
			set: one(oneOf(Outputs()...), "one of "+strings.Join(Outputs(), ", "),
				func(c *Config) *string { return &c.People.Output })},
		{name: "color", value: "auto|always|never", preset: "auto", flagOnly: true,
			usage: "Whether to print colours. auto prints them on a terminal, unless NO_COLOR is set.",
			set: one(oneOf("auto", "always", "never"), "auto, always or never",
				func(c *Config) *string { return &c.People.Color })},
		{name: "no-pager", flagOnly: true, usage: "Do not use a pager.",
			set: personToggle(func(w *PeopleWords) *bool { return &w.NoPager })},
		{name: "quiet", short: "q", flagOnly: true, usage: "Print only the result.",
			set: personToggle(func(w *PeopleWords) *bool { return &w.Quiet })},
	}, stopped, nodeSettings()[len(storeSettings()):])
}

// forChange returns the settings of a command for people that changes something.
func forChange(own ...setting) []setting {
	return forPeople(append(own, setting{name: "dry-run", flagOnly: true, usage: "Print the requests instead of " +
		"sending them.",
		set: personToggle(func(w *PeopleWords) *bool { return &w.DryRun })})...)
}

// forRisk returns the settings of a command that asks before it changes something.
func forRisk(own ...setting) []setting {
	return forChange(append(own, setting{name: "yes", short: "y", flagOnly: true, usage: "Do not ask.",
		set: personToggle(func(w *PeopleWords) *bool { return &w.Yes })})...)
}

// oneName returns a function that reads the name of an object, which may be missing if isOptional
// is true. further reads the operands after the name. If it is nil, there may be none.
func oneName(isOptional bool, further func(w *PeopleWords, words []string) error) func(*Config, []string) error {
	return func(c *Config, words []string) (err error) {
		switch {
		case len(words) == 0 && isOptional:
			return nil
		case len(words) == 0:
			return fmt.Errorf("takes a NAME, such as sales.orders")
		case len(words) > 1 && further == nil:
			return fmt.Errorf("takes one NAME, not %d", len(words))
		}
		if c.People.Name, err = ParseName(words[0]); err != nil || further == nil {
			return err
		}
		return further(&c.People, words[1:])
	}
}

// pairsOf returns a function that reads operands of the form K=V. It requires at least the number
// least of them.
func pairsOf(least int) func(*PeopleWords, []string) error {
	return func(w *PeopleWords, words []string) error {
		if len(words) < least {
			return fmt.Errorf("takes NAME K=V..., such as sales.orders write.format.default=orc")
		}
		w.Pairs = make(map[string]string, len(words))
		for _, word := range words {
			key, value, ok := strings.Cut(word, "=")
			if !ok || key == "" {
				return fmt.Errorf("%q is not K=V", word)
			}
			w.Pairs[key] = value
		}
		return nil
	}
}

// atMost returns a function that passes up to n operands to keep.
func atMost(n int, what string, keep func(w *PeopleWords, words []string)) func(*PeopleWords, []string) error {
	return func(w *PeopleWords, words []string) error {
		if len(words) > n {
			return fmt.Errorf("takes %s", what)
		}
		keep(w, words)
		return nil
	}
}

// wordsOfRef reads TABLE NAME [VERSION].
func wordsOfRef(c *Config, words []string) (err error) {
	if len(words) < 2 || len(words) > 3 {
		return fmt.Errorf("takes TABLE NAME [VERSION]")
	}
	if len(words) == 3 {
		c.People.Version = words[2]
	}
	c.People.Ref = words[1]
	c.People.Name, err = ParseName(words[0])
	return err
}

// wordsOfMove reads A B.
func wordsOfMove(c *Config, words []string) (err error) {
	if len(words) != 2 {
		return fmt.Errorf("takes the name and the new name")
	}
	if c.People.Name, err = ParseName(words[0]); err == nil {
		c.People.To, err = ParseName(words[1])
	}
	return err
}

// wordsOfConnect reads [ENGINE] [TABLE].
func wordsOfConnect(c *Config, words []string) (err error) {
	switch {
	case len(words) > 2:
		return fmt.Errorf("takes [ENGINE] [TABLE]")
	case len(words) > 1:
		c.People.Name, err = ParseName(words[1])
	}
	if len(words) > 0 {
		c.People.Engine = words[0]
	}
	return err
}

// wordsOfAPI reads METHOD PATH.
func wordsOfAPI(c *Config, words []string) error {
	if len(words) != 2 || !strings.HasPrefix(words[1], "/") {
		return fmt.Errorf("takes METHOD PATH, such as GET /v1/config")
	}
	c.People.Method, c.People.Path = strings.ToUpper(words[0]), words[1]
	return nil
}

// parsePositive reads a number from 1 to 1,000,000.
func parsePositive(v string) (int, error) { return within(strconv.Atoi, 1, 1_000_000)(v) }
