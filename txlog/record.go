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
	// Place says how the files are reached. It is kept because the warehouse may be gone when they
	// are deleted.
	Place        Place         `json:"place"`
	Participants []Participant `json:"participants"`
	// Files are the locations of all files that the transaction has written or may yet write, in
	// all its tries.
	Files []string `json:"files"`
	// Published are those of Files that pointers name, or named. It is empty before the transaction
	// is committed.
	Published []string  `json:"published,omitempty"`
	Began     time.Time `json:"began"`
	// Deadline is the time from which anybody may abort the transaction.
	Deadline  time.Time `json:"deadline"`
	Principal string    `json:"principal"`
	RequestID string    `json:"request-id,omitempty"`
}

// Place says which locations can be reached, and how, as storage.Place does. No secrets.
type Place struct {
	Roots   []string          `json:"roots"`
	Options map[string]string `json:"options,omitempty"`
	// Secret is the id of the secret that it is reached with, and Warehouse that of the warehouse
	// whose secret it is; zero: there is none.
	Secret    registry.ID `json:"secret,omitzero"`
	Warehouse registry.ID `json:"warehouse,omitzero"`
}

// Participant is a table that a transaction changes, or asks something of.
type Participant struct {
	Ident   moorage.Identifier `json:"identifier"`
	Pointer registry.ID        `json:"pointer"`
	// ETag is the version that the pointer is expected to have; zero for a table that is created.
	ETag registry.ETag `json:"etag,omitzero"`
	// Writes is false for a table that carries only requirements.
	Writes bool `json:"writes,omitempty"`
}

var transactionMembers = registry.MembersOf[Transaction]()

// Members implements registry.Value.
func (Transaction) Members() *registry.Members { return transactionMembers }

// Surplus returns the files that no pointer ever named or, if the transaction is not committed,
// ever will: Files without Published, in their order.
func (t Transaction) Surplus() []string {
	if slices.Equal(t.Files, t.Published) { // as nearly always: it was built once
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

// Entry is a transaction as it stands in the log. State is StateNone, and ETag zero, if it does not
// stand there any more.
type Entry struct {
	Transaction
	State registry.State
	ETag  registry.ETag
	// Unreadable says why the record cannot be read: it is damaged, or of a later version. Then
	// only ID, State and ETag are known, and the log takes no step with it. Nil means that all is
	// known. A record whose key is not an id has the zero ID, and only All
	// returns it: nobody can have begun that transaction.
	Unreadable error
}

// Exists reports whether the transaction was in the log.
func (e Entry) Exists() bool { return e.State != registry.StateNone }

// LockPatience is how long after its deadline a transaction is left alone because others hold the
// locks of its tables.
const LockPatience = 5 * time.Minute

// IsDue reports whether others than its coordinator may end a transaction at now: it is COMMITTED,
// ABORTED, past its deadline, or began before abandonedBefore. Nobody may end one that cannot be
// read.
func (e Entry) IsDue(now, abandonedBefore time.Time) bool {
	if e.Unreadable != nil {
		return false
	}
	return e.State != registry.StatePending || e.Began.Before(abandonedBefore) || now.After(e.Deadline)
}

// checkReadable refuses a step with a transaction whose record cannot be read.
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

// decodeEntry reads a transaction record. A key that none of this package's records has gives an
// Entry without an id.
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

// decodeTransaction reads the value of the record of the transaction id. An unknown state and
// another transaction's id are as bad as a damaged value: a reader that trusted them would delete
// files that do not belong to the transaction.
func decodeTransaction(record registry.Record, id registry.ID) (Transaction, error) {
	switch record.State {
	case registry.StatePending, registry.StateCommitted, registry.StateAborted:
	default:
		return Transaction{}, fmt.Errorf("%s is %s, which no transaction can be", record.Key, record.State)
	}
	transaction, err := registry.Decode[Transaction](record)
	if err == nil && transaction.ID != id {
		err = fmt.Errorf("%s holds the transaction %s", record.Key, transaction.ID)
	}
	return transaction, err
}
