package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"moorage/management/client"
)

// MaintainWords are the parsed words of a command about maintenance.
type MaintainWords struct {
	Kind  string        // of the job: snapshots or orphans
	Table client.Object // the job's table
	// Change is what to do with a job, one of jobChanges. For an object it is the last word of the
	// command.
	Change string
	Job    string // id

	Warehouse string // to adopt
	Outside   string // the warehouse to search for files outside of all tables

	Kinds        []string // of work to claim
	Holder, Exec string
	TTL          time.Duration
	Once         bool

	MaxSnapshotAge, MaxRefAge, Delay time.Duration
	MinSnapshots                     int
	KeepFiles                        bool
	OlderThan, Quarantine            time.Duration
	EqualAuthorities, Confirm, Adopt bool
	Reason                           string
	Settings                         map[string]string // of a policy, by name
	Unsafe                           bool
	ByPolicy, DryRun                 bool
	Sample                           int // maximum number of files in a plan's output
	Verbose                          bool
}

// Kinds of jobs, as commands name them.
const (
	KindSnapshots = "snapshots"
	KindOrphans   = "orphans"
)

// jobIDs are the ids of jobs.
var jobIDs = regexp.MustCompile(`^[0-9a-f]{32}$`)

// wordsOfMaintain reads one of kinds and TABLE.
func wordsOfMaintain(kinds ...string) func(*Config, []string) error {
	return func(c *Config, words []string) error {
		if len(words) == 2 {
			for _, kind := range kinds {
				if words[0] == kind {
					c.Maintain.Kind = kind
					return wordsOfMaintainTable(c, words[1:])
				}
			}
		}
		return fmt.Errorf("takes %s TABLE, such as snapshots default.sales.orders", strings.Join(kinds, "|"))
	}
}

// wordsOfMaintainTable reads TABLE.
func wordsOfMaintainTable(c *Config, words []string) (err error) {
	if len(words) != 1 {
		return fmt.Errorf("takes one TABLE, such as default.sales.orders")
	}
	c.Maintain.Table, err = client.ParseObject("table", words[0])
	return err
}

// wordsOfMaintainID reads ID.
func wordsOfMaintainID(c *Config, words []string) error {
	if len(words) != 1 || !jobIDs.MatchString(words[0]) {
		return fmt.Errorf("takes the ID of a job, 32 hexadecimal digits that maintain jobs shows")
	}
	c.Maintain.Job = words[0]
	return nil
}

// jobChanges are the actions of maintain job.
var jobChanges = []string{"cancel", "retry", "quarantine", "pause", "resume"}

// wordsOfMaintainJob reads an action and ID.
func wordsOfMaintainJob(c *Config, words []string) error {
	if len(words) == 2 && slices.Contains(jobChanges, words[0]) {
		c.Maintain.Change = words[0]
		return wordsOfMaintainID(c, words[1:])
	}
	return fmt.Errorf("takes cancel, retry, quarantine, pause or resume, and the ID of a job")
}

// wordsOfMaintainOrphans reads adopt and WAREHOUSE, or nothing.
func wordsOfMaintainOrphans(c *Config, words []string) error {
	if len(words) == 0 {
		return nil
	}
	if len(words) != 2 || words[0] != "adopt" || words[1] == "" {
		return fmt.Errorf("takes --warehouse NAME, or adopt and the name of a warehouse")
	}
	c.Maintain.Warehouse = words[1]
	return nil
}

// wordsOfMaintained reads OBJECT of the command called change.
func wordsOfMaintained(change string) func(*Config, []string) error {
	return func(c *Config, words []string) (err error) {
		c.Maintain.Change = change
		switch {
		case len(words) == 1 && words[0] == "server":
			c.Maintain.Table = client.Object{}
		case len(words) == 2:
			c.Maintain.Table, err = client.ParseObject(words[0], words[1])
		default:
			err = fmt.Errorf("takes server, warehouse W, namespace W.A.B or table W.A.B.T")
		}
		if err != nil {
			return err
		}
		if c.Maintain.Table.View+c.Maintain.Table.Function != "" {
			return fmt.Errorf("only tables are maintained")
		}
		return nil
	}
}
