// Command moorage runs an Apache Iceberg REST catalog, and looks after its store.
//
// It is the only place where the parts are put together, where the environment
// is read and where the clock and the source of randomness are chosen. Each
// sub-command is one file, in which the settings that only it has stand; settings.go and s3settings.go hold those that it
// shares with others, and config.go where their values come from.
//
// Exit codes: 0 done, 1 it went wrong (one sentence on stderr), 2 the command line, the
// environment or the configuration file is wrong (every fault on a line of its own).
package main
