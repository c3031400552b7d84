package audit

import "errors"

// ErrClaimed means that another process writes the audit log there.
var ErrClaimed = errors.New("another process writes this audit log: give each server its own --data or --audit")
