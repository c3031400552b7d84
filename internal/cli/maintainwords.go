package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"moorage/management/client"
)

// MaintainWords are the parsed operands of a command about maintenance.
type MaintainWords struct {
	Object client.Object
	Named  bool   // of maintain status: the command line names an Object
	Kind   string // kind of job: one of the constants below
	Set    string // of maintain set: SetOn, SetOff or SetInherit
	Change string // what to do with a job, one of jobChanges; empty to print its files
	Job    string // id

	Kinds        []string // the kinds of work to claim
	Holder, Exec string
	TTL          time.Duration
	Once         bool

	MaxSnapshotAge, MaxRefAge, Delay time.Duration
	MinSnapshots                     int
	KeepFiles                        bool
	OlderThan                        time.Duration // zero means the server's default
	Quarantine                       time.Duration
	EqualAuthorities, Confirm, Adopt bool
	Reason                           string
	Settings                         map[string]string // settings of a policy, by name
	Unsafe                           bool
	ByPolicy, DryRun                 bool
	Sample                           int // maximum number of files in the output of a dry run
	Verbose                          bool
}

// The kinds of jobs on command lines.
const (
	KindSnapshots  = "snapshots"
	KindOrphans    = "orphans"
	kindCompaction = "compaction"
)

// The values of MaintainWords.Set.
const (
	SetOn      = "on"
	SetOff     = "off"
	SetInherit = "inherit"
)

// maintainKinds are the kinds of maintenance that a policy can enable.
var maintainKinds = []string{KindSnapshots, KindOrphans, kindCompaction}

// maintained reads "server", or the kind and the name of an object that can be maintained.
func (w *MaintainWords) maintained(words []string) error {
	object, err := objectOf(words)
	if err == nil && object.View+object.Function != "" {
		err = fmt.Errorf("only tables are maintained")
	}
	w.Object = object
	return err
}

// wordsOfObject reads OBJECT.
func wordsOfObject(c *Config, words []string) error { return c.Maintain.maintained(words) }

// wordsOfStatus reads OBJECT, or nothing.
func wordsOfStatus(c *Config, words []string) error {
	if c.Maintain.Named = len(words) > 0; !c.Maintain.Named {
		return nil
	}
	return c.Maintain.maintained(words)
}

// wordsOfSet reads OBJECT, a kind, and on, off or inherit.
func wordsOfSet(c *Config, words []string) error {
	at := len(words) - 2
	if at < 1 || !slices.Contains(maintainKinds, words[at]) ||
		!slices.Contains([]string{SetOn, SetOff, SetInherit}, words[at+1]) {
		return fmt.Errorf("takes OBJECT, then %s, then %s, %s or %s", orOf(maintainKinds), SetOn, SetOff, SetInherit)
	}
	c.Maintain.Kind, c.Maintain.Set = words[at], words[at+1]
	return c.Maintain.maintained(words[:at])
}

// wordsOfRun reads a kind and TABLE, or orphans and a warehouse.
func wordsOfRun(c *Config, words []string) (err error) {
	switch {
	case len(words) == 3 && words[0] == KindOrphans && words[1] == "warehouse":
		c.Maintain.Object, err = client.ParseObject(words[1], words[2])
	case len(words) == 2 && slices.Contains(maintainKinds, words[0]):
		c.Maintain.Object, err = client.ParseObject("table", words[1])
	default:
		return fmt.Errorf("takes %s and TABLE, such as snapshots default.sales.orders, or orphans warehouse NAME",
			orOf(maintainKinds))
	}
	c.Maintain.Kind = words[0]
	return err
}

// orOf returns words with commas and "or" between them.
func orOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// jobChanges are the actions of maintain job.
var jobChanges = []string{"cancel", "retry", "quarantine", "pause", "resume"}

// wordsOfJob reads ID, or an action and ID.
func wordsOfJob(c *Config, words []string) error {
	if len(words) == 2 && slices.Contains(jobChanges, words[0]) {
		c.Maintain.Change, words = words[0], words[1:]
	}
	if len(words) != 1 || !isID(words[0]) {
		return fmt.Errorf("takes the ID of a job, 32 hexadecimal digits that maintain status shows, with %s before it "+
			"or not", orOf(jobChanges))
	}
	c.Maintain.Job = words[0]
	return nil
}
