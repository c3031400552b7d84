package txlog

import (
	"fmt"
	"slices"
	"time"

	"moorage"
	"moorage/registry"
)

// Operation is the operation of the changes that commit transactions.
const Operation = "commit-transaction"

// Transaction is the value of a transaction record.
type Transaction struct {
	registry.Unknown
	// ID is the commit id. The change that commits the transaction has the same id.
	ID        registry.ID `json:"id"`
	Warehouse string      `json:"warehouse"`
	// Place describes how the files are reached. The record has it because the warehouse may no
	// longer exist when the files are deleted.
	Place        Place         `json:"place"`
	Participants []Participant `json:"participants"`
	// Files lists the locations of all files that the transaction has written or may still write,
	// in all its tries.
	Files []string `json:"files"`
	// Published lists the elements of Files to which pointers refer, or have referred. It is empty
	// before the transaction is committed.
	Published []string  `json:"published,omitempty"`
	Began     time.Time `json:"began"`
	// Deadline is the time from which any node may abort the transaction.
	Deadline  time.Time `json:"deadline"`
	Principal string    `json:"principal"`
	RequestID string    `json:"request-id,omitempty"`
}

// Place describes which locations can be reached, and how, as storage.Place does. It contains no
// secrets.
type Place struct {
	Roots   []string          `json:"roots"`
	Options map[string]string `json:"options,omitempty"`
	// Secret is the id of the secret for its storage, and Warehouse is the id of the warehouse that
	// owns the secret. Both are zero if there is no secret.
	Secret    registry.ID `json:"secret,omitzero"`
	Warehouse registry.ID `json:"warehouse,omitzero"`
}

// Participant is a table that a transaction changes, or on which it has requirements.
type Participant struct {
	Ident   moorage.Identifier `json:"identifier"`
	Pointer registry.ID        `json:"pointer"`
	// ETag is the version that the pointer must have. It is zero for a table that the transaction
	// creates.
	ETag registry.ETag `json:"etag,omitzero"`
	// Writes is false for a table that the transaction does not change.
	Writes bool `json:"writes,omitempty"`
}

var transactionMembers = registry.MembersOf[Transaction]()

// Members implements registry.Value.
func (Transaction) Members() *registry.Members { return transactionMembers }

// Surplus returns the unpublished files: Files without Published, in order. No pointer ever
// referred to them. Once the transaction is not PENDING, no pointer ever will.
func (t Transaction) Surplus() []string {
	if slices.Equal(t.Files, t.Published) { // usually, if there was only one try
		return nil
	}
	published := make(map[string]bool, len(t.Published))
	for _, file := range t.Published {
		published[file] = true
	}
	var surplus []string
	for _, file := range t.Files {
		if !published[file] {
			surplus = append(surplus, file)
		}
	}
	return surplus
}

// Entry is a transaction in the log. If it is no longer there, State is StateNone and ETag is zero.
type Entry struct {
	Transaction
	State registry.State
	ETag  registry.ETag
	// Unreadable explains why the record cannot be read: it is damaged, or was written by a later
	// version. In that case, only ID, State and ETag are known, and the methods of Log refuse to
	// change the record. For a readable record, Unreadable is nil. A record whose key is not an id
	// has the zero ID, and only All returns it. Such a transaction cannot have been begun.
	Unreadable error
}

// Exists reports whether the transaction was in the log.
func (e Entry) Exists() bool { return e.State != registry.StateNone }

// LockPatience is the time for which recovery leaves a transaction alone after its deadline, while
// other operations hold the locks of its tables.
const LockPatience = 5 * time.Minute

// IsDue reports whether nodes other than the coordinator may end a transaction at time now. It may
// if the transaction is COMMITTED, ABORTED, past its deadline, or began before abandonedBefore. An
// unreadable transaction is never due.
func (e Entry) IsDue(now, abandonedBefore time.Time) bool {
	if e.Unreadable != nil {
		return false
	}
	return e.State != registry.StatePending || e.Began.Before(abandonedBefore) || now.After(e.Deadline)
}

// checkReadable refuses a step of a transaction whose record cannot be read.
func (e Entry) checkReadable(step string) error {
	if e.Unreadable != nil {
		return fmt.Errorf("txlog: %s %s: %w", step, e.ID, e.Unreadable)
	}
	return nil
}

// checkPending refuses a step that only a PENDING transaction can take.
func (e Entry) checkPending(step string) error {
	if err := e.checkReadable(step); err != nil {
		return err
	}
	if e.State != registry.StatePending {
		return fmt.Errorf("txlog: %s %s, which is %s", step, e.ID, e.State)
	}
	return nil
}

// decodeEntry reads a transaction record. If the key is not in this package's form, the Entry has
// no id.
func decodeEntry(record registry.Record) Entry {
	e := Entry{State: record.State, ETag: record.ETag}
	var id registry.ID
	if err := id.UnmarshalText([]byte(record.Key.ID)); err != nil || id.IsZero() ||
		registry.TransactionKey(id) != record.Key {
		e.Unreadable = fmt.Errorf("the key %s holds no id", record.Key)
		return e
	}
	if e.Transaction, e.Unreadable = decodeTransaction(record, id); e.Unreadable != nil {
		e.Transaction = Transaction{ID: id}
	}
	return e
}

// decodeTransaction reads the value of the record of the transaction called id. An unknown state or
// another transaction's id counts as damage, because a reader that trusted them would delete files
// of other transactions.
func decodeTransaction(record registry.Record, id registry.ID) (Transaction, error) {
	switch record.State {
	case registry.StatePending, registry.StateCommitted, registry.StateAborted:
	default:
		return Transaction{}, fmt.Errorf("%s has the state %s, which no transaction has", record.Key, record.State)
	}
	transaction, err := registry.Decode[Transaction](record)
	if err == nil && transaction.ID != id {
		err = fmt.Errorf("%s holds the transaction %s", record.Key, transaction.ID)
	}
	return transaction, err
}
