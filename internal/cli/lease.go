package cli

import "time"

// The longest and the shortest life of a lease, and the longest wait for one.
const (
	leaseTTLMin, leaseTTLMax = 10 * time.Second, time.Hour
	leaseWaitMax             = time.Minute
)

func leaseCommands(actions Actions) []command {
	return []command{{
		name: "lease run", summary: "run a job on a table, under a lease", settings: leaseSettings(),
		run: actions.LeaseRun,
		text: `Takes a lease on a table from the server at --uri, runs the program that --exec names, and renews
the lease as long as it runs. Then it gives the lease back. If the lease is lost the program gets
SIGTERM, and the command fails.

The program gets no arguments, and no shell is in between. Names are in its environment:
MOORAGE_URI, MOORAGE_WAREHOUSE, MOORAGE_NAMESPACE (its levels joined by the byte 0x1F),
MOORAGE_TABLE, and MOORAGE_LEASE. MOORAGE_JOB is the path of a file that has all of these as JSON.
Never put a name into the text of a script or of SQL: tables may be called anything.

A commit that sends MOORAGE_LEASE in the header X-Moorage-Lease happens only while the lease is
held. Java and PyIceberg send it if the catalog has the property header.X-Moorage-Lease.
`,
	}}
}

func leaseSettings() []setting {
	words := func(field func(*LeaseWords) *string) func(*Config, []string) error {
		return text(func(c *Config) *string { return field(&c.Lease) })
	}
	server := askedServer("The server that gives out the lease.")
	server.required = true
	return []setting{
		server, token(),
		{name: "warehouse", value: "NAME", preset: "default", flagOnly: true, usage: "Warehouse of the table.",
			set: words(func(w *LeaseWords) *string { return &w.Warehouse })},
		{name: "namespace", value: "LEVEL", list: true, required: true, flagOnly: true,
			usage: "Namespace of the table. One that is in another is given level by level, the outer first.",
			set: func(c *Config, v []string) error {
				c.Lease.Namespace = v
				return nil
			}},
		{name: "table", value: "NAME", required: true, flagOnly: true, usage: "Name of the table.",
			set: words(func(w *LeaseWords) *string { return &w.Table })},
		{name: "scope", value: "SCOPE", preset: "*", flagOnly: true,
			usage: "What the lease is on: * for the whole table, job:KIND, or part: and hexadecimal digits.",
			set:   words(func(w *LeaseWords) *string { return &w.Scope })},
		{name: "holder", value: "TEXT", flagOnly: true,
			usage: "What others are told about who has the lease. Default: the machine and the process.",
			set:   words(func(w *LeaseWords) *string { return &w.Holder })},
		{name: "ttl", value: "DURATION", preset: "2m", flagOnly: true,
			usage: "How long the lease lasts without a renewal, 10s to 1h. It is renewed three times as often.",
			set: one(within(time.ParseDuration, leaseTTLMin, leaseTTLMax), "a duration from 10s to 1h",
				func(c *Config) *time.Duration { return &c.Lease.TTL })},
		{name: "wait", value: "DURATION", preset: "0s", flagOnly: true,
			usage: "How long to wait for a lease that somebody else has, at most 1m.",
			set: one(within(time.ParseDuration, 0, leaseWaitMax), "a duration from 0s to 1m",
				func(c *Config) *time.Duration { return &c.Lease.Wait })},
		{name: "exec", value: "FILE", required: true, flagOnly: true, usage: "The program to run.",
			set: words(func(w *LeaseWords) *string { return &w.Exec })},
	}
}
