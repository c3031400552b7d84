package audit

import "errors"

// ErrClaimed means that another process already writes this audit log.
var ErrClaimed = errors.New("another process writes this audit log: give each server its own --data or --audit")
