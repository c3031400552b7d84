package transfers

import (
	"fmt"
	"strconv"
	"time"

	"moorage/testkit/servers"
)

// The properties of every version.
const (
	PropCounter  = "counter"
	PropTransfer = "transfer" // the transfer that made the version
)

// Mode is a transfer's action on a table.
type Mode uint8

// The modes.
const (
	Moves    Mode = iota // changes the counter, and requires that it is unchanged since the load
	Stamps               // writes only the transfer's id, whatever the version is
	Requires             // only requires that no transfer moved the table since the load
	Creates              // creates the table, with a counter
)

// Part is the part of a transfer that concerns one table.
type Part struct {
	Table  string
	Mode   Mode
	Change int    // change of the counter
	Base   string // the location of the loaded version

	change servers.Object
}

// Transfer is one request of a client. The client may send it several times.
type Transfer struct {
	ID     string // "3.17": request 17 of client 3
	Parts  []Part
	Single bool   // sent as a commit to its one table
	Key    string // the Idempotency-Key, "" if there is none
}

// String names the transfer and its tables.
func (t Transfer) String() string {
	text := "transfer " + t.ID + " of"
	for _, p := range t.Parts {
		text += " " + p.Table
		switch p.Mode {
		case Moves:
			text += fmt.Sprintf("(%+d)", p.Change)
		case Requires:
			text += "(required)"
		case Creates:
			text += fmt.Sprintf("(created with %d)", p.Change)
		}
	}
	return text
}

// request returns the path and the body of the request.
func (t Transfer) request(namespace string) (path string, body servers.Object) {
	if t.Single {
		return servers.TablePath(namespace, t.Parts[0].Table), t.Parts[0].change
	}
	changes := make([]servers.Object, len(t.Parts))
	for i, p := range t.Parts {
		changes[i] = servers.Object{
			"identifier":   servers.Object{"namespace": []string{namespace}, "name": p.Table},
			"requirements": p.change["requirements"], "updates": p.change["updates"],
		}
	}
	return "transactions/commit", servers.Object{"table-changes": changes}
}

// snapshotsKept is the number of snapshots that a table keeps, so that its metadata does not grow.
const snapshotsKept = 3

// plan fills in the request for a table that was loaded as base. The request adds a snapshot with
// the id snapshot, so that other transfers can require that the table's head has not changed.
func (p *Part) plan(id string, base servers.Loaded, snapshot int64) error {
	p.Base = base.Location
	requirements := []servers.Object{{"type": "assert-table-uuid", "uuid": base.Metadata.UUID}}
	updates := []servers.Object{}
	properties := map[string]string{PropTransfer: id}
	head := base.Metadata.Head()
	if p.Mode != Stamps {
		required := servers.Object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": nil}
		if head != 0 {
			required["snapshot-id"] = head
		}
		requirements = append(requirements, required)
	}
	if p.Mode == Moves {
		counter, err := strconv.Atoi(base.Metadata.Properties[PropCounter])
		if err != nil {
			return fmt.Errorf("%s: %w", base.Location, err)
		}
		properties[PropCounter] = strconv.Itoa(counter + p.Change)
		updates = append(updates, moveUpdates(base.Metadata, snapshot)...)
	}
	if p.Mode != Requires {
		updates = append(updates, servers.Object{"action": "set-properties", "updates": properties})
	}
	p.change = servers.Object{"requirements": requirements, "updates": updates}
	return nil
}

// planCreate fills in the request that creates a table at a location.
func (p *Part) planCreate(id, uuid, location string) {
	properties := map[string]string{PropTransfer: id, PropCounter: strconv.Itoa(p.Change)}
	p.change = servers.Object{
		"requirements": []servers.Object{{"type": "assert-create"}},
		"updates": []servers.Object{
			{"action": "assign-uuid", "uuid": uuid},
			{"action": "upgrade-format-version", "format-version": 2},
			{"action": "add-schema", "schema": servers.Object{"type": "struct", "schema-id": 0, "fields": []any{}}},
			{"action": "set-current-schema", "schema-id": -1},
			{"action": "add-spec", "spec": servers.Object{"spec-id": 0, "fields": []any{}}},
			{"action": "set-default-spec", "spec-id": -1},
			{"action": "add-sort-order", "sort-order": servers.Object{"order-id": 0, "fields": []any{}}},
			{"action": "set-default-sort-order", "sort-order-id": -1},
			{"action": "set-location", "location": location},
			{"action": "set-properties", "updates": properties},
		},
	}
}

// moveUpdates returns the updates that add a snapshot on top of base's head, and remove the oldest
// snapshots.
func moveUpdates(base servers.Document, snapshot int64) []servers.Object {
	added := servers.Object{
		"snapshot-id": snapshot, "sequence-number": base.LastSequence + 1, "timestamp-ms": time.Now().UnixMilli(),
		"manifest-list": fmt.Sprintf("%s/metadata/snap-%d.avro", base.Location, snapshot),
		"summary":       servers.Object{"operation": "append"}, "schema-id": 0,
	}
	if head := base.Head(); head != 0 {
		added["parent-snapshot-id"] = head
	}
	updates := []servers.Object{
		{"action": "add-snapshot", "snapshot": added},
		{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot},
	}
	for i := range len(base.Snapshots) + 1 - snapshotsKept {
		updates = append(updates, servers.Object{"action": "remove-snapshots",
			"snapshot-ids": []int64{base.Snapshots[i].ID}})
	}
	return updates
}
