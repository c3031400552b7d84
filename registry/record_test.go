package registry_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	someID    = registry.ID{0: 0xa1, 15: 0x01}
	otherID   = registry.ID{0: 0xb2, 15: 0x02}
	someETag  = registry.ETag{0: 0xc3, 15: 0x03}
	otherETag = registry.ETag{0: 0xd4, 15: 0x04}
	someTime  = time.Date(2026, 11, 21, 10, 11, 12, 131_415_161, time.UTC)
)

// goldenValues returns two values of every struct that is the value of a record: one with all of
// its members set, and the zero value. The keys are names of golden files.
func goldenValues() map[string][2]registry.Value {
	properties := map[string]string{"owner": "ann", "a \"quoted\" key": "ä\x00"}
	return map[string][2]registry.Value{
		"warehouse": {registry.Warehouse{
			ID: someID, Location: "file:///data/w", AllowedLocations: []string{"s3://bucket/a"}, Properties: properties, Since: someTime,
		}, registry.Warehouse{}},
		"warehouse-storage": {registry.Warehouse{
			ID: someID, Location: "s3://bucket/w", Storage: map[string]string{"s3.endpoint": "http://127.0.0.1:9000"}, Since: someTime,
		}, registry.Warehouse{}},
		"namespace": {registry.Namespace{ID: someID, Properties: properties, Since: someTime}, registry.Namespace{}},
		"entry":     {registry.Entry{Pointer: someID, Shard: 15}, registry.Entry{}},
		"pointer": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a", "b.c"}, Name: "t<>&", NamespaceID: otherID, View: true,
			TableUUID: "0190f3a0-1234-7abc-8def-0123456789ab", MetadataLocation: "file:///data/w/t/metadata/00001.metadata.json",
			Claims: []string{"file:///data/w/old", "file:///data/w/t"}, Since: someTime, Task: otherID,
		}, registry.Pointer{}},
		"pointer-storage": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", Storage: map[string]string{"s3.region": "eu"}, Since: someTime,
		}, registry.Pointer{}},
		"pointer-warehouse": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", WarehouseID: otherID, Since: someTime,
		}, registry.Pointer{}},
		"pointer-replayable": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", ReplayableUntil: someTime,
		}, registry.Pointer{}},
		"pointer-reachable": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", ReachableUntil: someTime,
		}, registry.Pointer{}},
		"pointer-registered": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", Registration: otherID, Since: someTime,
		}, registry.Pointer{}},
		"pointer-trims": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", Since: someTime, Trims: []registry.Trim{{
				ID: otherID, Node: someID, At: someTime, Folder: "file:///data/w/t/metadata", Files: []string{"00001-a.metadata.json"}, Before: someTime,
			}},
		}, registry.Pointer{}},
		"pointer-labels": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", Labels: otherID,
		}, registry.Pointer{}},
		"label": {registry.Labels{
			Object: map[string]string{"team": "billing", "tier": "<1>"},
			Fields: []registry.FieldLabels{{Field: 3, Labels: map[string]string{"classification": "pii"}}},
		}, registry.Labels{}},
		"pointer-last":   {samplePointer(2), registry.Pointer{}},
		"namespace-last": {registry.Namespace{ID: someID, Since: someTime, Last: registry.Last{Change: otherID, By: "ann"}}, registry.Namespace{}},
		"warehouse-last": {registry.Warehouse{ID: someID, Location: "file:///w", Since: someTime, Last: registry.Last{Change: otherID, By: "ann"}}, registry.Warehouse{}},
		"table-uuid":     {registry.TableUUIDClaim{Pointer: someID}, registry.TableUUIDClaim{}},
		"location":       {registry.LocationClaim{Pointer: someID}, registry.LocationClaim{}},
		"location-adopted": {registry.LocationClaim{
			Pointer: someID, Since: someTime, Adopted: someTime, AdoptedBy: "ann",
		}, registry.LocationClaim{}},
		"tombstone": {registry.Tombstone{
			Pointer: someID, Table: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
			TableUUID: "u", WarehouseID: otherID, Ended: someTime, How: registry.EndedUnregister, Lasting: true,
			ReachableUntil: someTime, MetadataLocation: "file:///data/w/t/metadata/00002.metadata.json",
			Trims: []registry.Trim{{ID: someID, Node: otherID, At: someTime, Folder: "file:///data/w/t/metadata", Files: []string{"00001.metadata.json"}}},
		}, registry.Tombstone{}},
		"dropped": {registry.Dropped{
			ID: someID, Kind: registry.ItemTable, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
			UUID: "u", At: someTime, By: "ann", Change: otherID, Ended: someTime, How: registry.EndedPurge, EndedBy: "system:purge",
			EndedChange: otherID,
		}, registry.Dropped{}},
		"pointer-dropped": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", Since: someTime, Dropped: someTime,
		}, registry.Pointer{}},
		"change": {registry.Change{
			ID: someID, Operation: "commit", Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
			Principal: "ann", RequestID: "r-1", Time: someTime,
			Versions: []registry.Version{
				{Key: registry.PointerKey(someID), Old: someETag, New: otherETag},
				{Key: registry.EntryKey(otherID, "new"), New: otherETag}, {Key: registry.EntryKey(otherID, "gone"), Old: someETag},
			},
		}, registry.Change{}},
		"change-group": {registry.Change{
			ID: someID, Operation: "commit", Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
			Principal: "ann", RequestID: "r-1", Client: "curl/8", Time: someTime,
			Group: []registry.Member{
				{Operation: "commit", Principal: "ann", RequestID: "r-1", Client: "curl/8", Time: someTime, Snapshot: 7},
				{Operation: "commit", Principal: "bob", Time: someTime},
			},
			Items: []registry.Item{{
				Kind: registry.ItemTable, ID: otherID, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
				Previous: &moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "old"}, UUID: "u",
				MetadataLocation: "file:///2", PreviousMetadataLocation: "file:///1",
			}},
		}, registry.Change{}},
		"change-trace": {registry.Change{
			ID: someID, Operation: "commit", Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
			Principal: "ann", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Time: someTime,
			Group: []registry.Member{
				{Operation: "commit", Principal: "ann", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Time: someTime},
			},
		}, registry.Change{}},
		"change-before": {registry.Change{
			ID: someID, Operation: "drop-table", Principal: "ann", Time: someTime,
			Items: []registry.Item{{
				Kind: registry.ItemTable, ID: otherID, Actions: []string{"set-snapshot-ref main", "+3"}, Purge: true, Ended: "a/b",
				Summary: sampleSummary(2),
			}},
			Versions: []registry.Version{
				{Key: registry.PointerKey(someID), Old: someETag, New: otherETag, Before: &registry.Before{
					State: registry.StateLive, Set: []byte(`{"a":{"b":[1]}}`), Gone: []string{"task"},
				}},
				{Key: registry.EntryKey(otherID, "gone"), Old: someETag, Before: &registry.Before{State: registry.StateTable, Cut: true}},
			},
		}, registry.Change{}},
		"task": {registry.Task{
			ID: someID, Kind: registry.TaskPurge, Pointer: otherID, Created: someTime, Attempts: 3, LastError: "no such bucket",
		}, registry.Task{}},
		"task-later": {registry.Task{ID: someID, Kind: registry.TaskPurge, Pointer: otherID, Created: someTime, NotBefore: someTime.Add(time.Hour)}, registry.Task{}},
		"idempotency": {registry.Idempotency{
			Method: "POST", Path: "/v1/w/namespaces/a/tables/t", Request: registry.Hash{0: 0xe5, 31: 0x05}, Created: someTime, Life: time.Hour,
			Outcome: registry.Outcome{Table: &registry.TableVersion{
				Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}, Pointer: someID, TableUUID: "0190f3a0-1234-7abc-8def-0123456789ab",
				MetadataLocation: "file:///data/w/t/metadata/00002.metadata.json",
			}},
		}, registry.Idempotency{}},
		"idempotency-registered": {registry.Idempotency{Request: registry.Hash{31: 6}, Created: someTime, Outcome: registry.Outcome{
			Table: &registry.TableVersion{Pointer: someID, MetadataLocation: "file:///data/w/v1.metadata.json", Registration: otherID},
		}}, registry.Idempotency{}},
		"idempotency-view": {registry.Idempotency{Request: registry.Hash{31: 4}, Created: someTime, Outcome: registry.Outcome{
			View: &registry.TableVersion{
				Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "v"}, Pointer: someID, TableUUID: "0190f3a0-1234-7abc-8def-0123456789ab",
				MetadataLocation: "file:///data/w/v/metadata/00002.gz.metadata.json",
			},
		}}, registry.Idempotency{}},
		"idempotency-failure": {registry.Idempotency{Request: registry.Hash{31: 1}, Created: someTime, Outcome: registry.Outcome{
			Failure: &registry.Failure{Kind: moorage.KindAlreadyExists, Message: "Table already exists: a.t"},
		}}, registry.Idempotency{}},
		"idempotency-namespace": {registry.Idempotency{Request: registry.Hash{31: 2}, Created: someTime, Outcome: registry.Outcome{
			Properties: map[string]string{},
		}}, registry.Idempotency{}},
		"idempotency-properties": {registry.Idempotency{Request: registry.Hash{31: 3}, Created: someTime, Outcome: registry.Outcome{
			Changed: &registry.ChangedProperties{Updated: []string{"a", "b"}, Removed: []string{}, Missing: []string{"c"}},
		}}, registry.Idempotency{}},
		"horizon": {registry.Horizon{Position: 7}, registry.Horizon{}},
		"store":   {registry.StoreID{ID: registry.ID{1}}, registry.StoreID{}},
		"retention": {registry.Retention{
			Time: someTime, Elapsed: time.Hour, Marks: []registry.Mark{{Position: 7, Elapsed: time.Minute}, {Position: 9, Elapsed: time.Hour}},
		}, registry.Retention{}},
		"assignment":       {registry.Assignment{Owner: someID, Until: someTime}, registry.Assignment{}},
		"format":           {registry.Format{Version: registry.FormatFirst}, registry.Format{}},
		"warehouse-access": {registry.Warehouse{ID: someID, Location: "file:///data/w", Since: someTime, Creator: "corp:ann", Granted: true}, registry.Warehouse{}},
		"namespace-access": {registry.Namespace{ID: someID, Since: someTime, Creator: "corp:ann", Granted: true}, registry.Namespace{}},
		"entry-access":     {registry.Entry{Pointer: someID, Shard: 15, Creator: "corp:ann"}, registry.Entry{}},
		"pointer-access": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", Since: someTime, Creator: "corp:ann", Granted: true,
		}, registry.Pointer{}},
		"principal": {registry.Principal{
			Disabled: true, Description: "the nightly job", SpeaksFor: "corp", Created: someTime, Keys: []registry.APIKey{{
				ID: "abcdefghjkmn", Description: "laptop", Roles: []string{"analysts"}, Created: someTime, By: "corp:ann",
				Secrets: []registry.KeySecret{{SHA256: registry.Hash{0: 0xe5}, Generation: 1, Ends: someTime}, {SHA256: registry.Hash{0: 0xe6}, Generation: 2, Ends: someTime}},
			}},
		}, registry.Principal{}},
		"role": {registry.Role{Description: "who reads", Holders: []string{"corp/analysts", "corp:ann"}, Created: someTime}, registry.Role{}},
		"grants": {registry.Grants{
			Kind: "namespace", Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}}, Ancestors: []registry.ID{someID, otherID},
			Owner: "corp:ann", Managed: true, Grants: []registry.Grant{{Grantee: "everyone", Privileges: []string{"read"}, By: "corp:ann", At: someTime}},
		}, registry.Grants{}},
		"epoch": {registry.Epoch{Number: 7}, registry.Epoch{}},
		"recent": {registry.Recent{Changes: []registry.PolicyChange{
			{Epoch: 7, Keys: []registry.Key{registry.RoleKey("analysts"), registry.GrantsKey(registry.ID{})}},
		}}, registry.Recent{}},
		"access-store": {registry.AccessStore{ID: someID, PageKey: registry.Hash{31: 1}, Since: someTime}, registry.AccessStore{}},
		"maker":        {registry.Maker{Name: "corp:ann"}, registry.Maker{}},
		"console-key":  {registry.ConsoleKey{Key: "AQID", Seal: true, Drawn: someTime}, registry.ConsoleKey{}},
		"public-key":   {registry.PublicKey{Algorithm: "EdDSA", Key: "AQID", Ends: someTime}, registry.PublicKey{}},
		"warehouse-secret": {registry.Warehouse{
			ID: someID, Location: "s3://bucket/w", Since: someTime, Secret: registry.SecretRef{ID: otherID, Version: 2, Names: []string{"server"}},
		}, registry.Warehouse{}},
		"pointer-secret": {registry.Pointer{
			ID: someID, Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t", WarehouseID: someID, Secret: otherID, Since: someTime,
		}, registry.Pointer{}},
		"secret-kinds": {registry.Secret{
			Warehouse: someID, Sealed: map[string]string{"server": "AQ=="}, By: "corp:ann", At: someTime,
			Kinds: map[string]string{"server": "access-key"},
		}, registry.Secret{}},
		"secret": {registry.Secret{
			Warehouse: someID, Sealed: map[string]string{"server": registry.SealedText([]byte{1, 2, 3})}, By: "corp:ann", At: someTime,
		}, registry.Secret{}},
		"secret-store": {registry.SecretStore{ID: someID}, registry.SecretStore{}},
		"maintenance-policy": {registry.MaintenancePolicy{
			Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}}, Jobs: []registry.JobPolicy{{
				Type: "icebergSnapshotManagement", Status: "enabled", Settings: []byte(`{"maxSnapshotAgeHours":120}`), Since: someTime, By: "ann",
			}},
		}, registry.MaintenancePolicy{}},
		"schedule": {registry.Schedule{
			Warehouse: someID, Rules: "6f0c12ab", Seq: 380, SeqAt: someTime, Jobs: []registry.KindSchedule{{
				Kind: "snapshots", Due: someTime, Rule: "ab12cd34", Mode: "event", Held: "paused", Outcome: "later", Error: "no such bucket", Last: someTime, Former: someTime,
				Base:  registry.ScheduleBase{Snapshots: 37, Files: 1, Deletes: 2, Bytes: 3, Seq: 4, Interval: time.Hour},
				Tries: 1, Laters: 2, LaterSince: someTime,
			}},
		}, registry.Schedule{}},
		"due": {registry.Due{Reason: "it fails", Since: someTime, By: "ann"}, registry.Due{}},
		"job": {registry.Job{
			ID: someID, Kind: "snapshots", Pointer: otherID, UUID: "0190f3a0-1234-7abc-8def-0123456789ab", Rule: "ab12cd34", Caller: "system:expire",
			Commit: otherID, Folder: "file:///data/w/~moorage/jobs/1", Input: &registry.JobFile{Location: "file:///data/1", Count: 3, SHA256: registry.Hash{1}},
			Lists: []registry.JobFile{{Location: "file:///data/2", What: "data", Count: 2, SHA256: registry.Hash{2}}}, Reach: "full",
			Created: someTime, Since: someTime, NotBefore: someTime, Progress: registry.JobProgress{List: 1, Line: 2, After: "x"}, Looked: "file:///data/3",
			Node: someID, Touched: someTime, Lease: 41, Holder: "spark 17", Before: registry.StateWaiting, Paused: true,
			Tries: 1, Laters: 2, LaterSince: someTime, LastError: "no such bucket",
			Totals: registry.JobTotals{Snapshots: 1, Files: 2, Bytes: 3, Read: 4, Kept: []registry.KeptOf{{Reason: "outside", Files: 5}}},
		}, registry.Job{}},
		"run": {registry.Run{
			Job: someID, Kind: "snapshots", Outcome: "done", Rule: "ab12cd34", Caller: "system:expire", Holder: "spark 17", Commit: otherID, Reach: "full",
			Began: someTime, Ended: someTime, Error: "x", Totals: registry.JobTotals{Snapshots: 1},
		}, registry.Run{}},
		"lease": {registry.Lease{Last: 41, Holds: []registry.Hold{{
			Token: 41, Scope: "*", Holder: "spark 17", Caller: "ann", Job: someID, Since: someTime, Expires: someTime, TTL: time.Minute,
		}}}, registry.Lease{}},
		"monitor": {registry.Monitor{Position: 7, Policies: "ab12cd34", Lost: true}, registry.Monitor{}},
		"walk": {registry.Walk{
			Ident: moorage.Identifier{Warehouse: "w"}, After: "a1", Reason: "policy", Since: someTime, Looked: 2, MadeDue: 1,
		}, registry.Walk{}},
		"pauses": {registry.Pauses{Pauses: []registry.Pause{{
			Scope: "server", Ident: moorage.Identifier{Warehouse: "w"}, Reason: "restored", By: "ann", Since: someTime,
		}}}, registry.Pauses{}},
	}
}

func goldenFile(name string) string {
	return filepath.Join("testdata", fmt.Sprintf("format-%d", registry.FormatFirst), name+".json")
}

// TestEncodeIsTheFormat compares the encoding with golden files, which have the content of stores
// of the present format. Since the first release, these files only gain members.
func TestEncodeIsTheFormat(t *testing.T) {
	t.Parallel()
	for name, values := range goldenValues() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines [][]byte
			for _, value := range values {
				line, err := registry.Encode(value)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, line)
			}
			got := append(bytes.Join(lines, []byte("\n")), '\n')
			if *update {
				if err := os.WriteFile(goldenFile(name), got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(goldenFile(name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("encoded as\n%s\nwant\n%s", got, want)
			}
			for i, line := range bytes.Split(bytes.TrimSpace(want), []byte("\n")) {
				checkDecodes(t, line, values[i])
				checkKeeps(t, line, values[i])
			}
		})
	}
}

// checkDecodes fails the test unless encoded decodes to want.
func checkDecodes(t *testing.T, encoded []byte, want registry.Value) {
	t.Helper()
	got, err := decoders()[reflect.TypeOf(want)](registry.Record{Key: registry.FormatKey(), ETag: someETag, Value: encoded})
	if err != nil {
		t.Fatalf("decode %s: %v", encoded, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwas decoded as %+v\nwant %+v", encoded, got, want)
	}
}

// checkKeeps adds an unknown member at the start of encoded, a value of the type of want. It fails
// the test unless decoding and encoding moves the member to the end.
func checkKeeps(t *testing.T, encoded []byte, want registry.Value) {
	t.Helper()
	const member = `"a member of a later version":[{}]`
	members := strings.TrimSuffix(string(encoded[1:]), "}")
	before, after := "{"+member+","+members+"}", "{"+members+","+member+"}"
	if members == "" {
		before, after = "{"+member+"}", "{"+member+"}"
	}
	got, err := decoders()[reflect.TypeOf(want)](registry.Record{Key: registry.FormatKey(), ETag: someETag, Value: []byte(before)})
	if err != nil {
		t.Fatalf("decode %s: %v", before, err)
	}
	if written, err := registry.Encode(got); err != nil || string(written) != after {
		t.Errorf("%s\nwas written as %s, %v\nwant           %s", before, written, err, after)
	}
}

// TestUnknownMembersSurvive: an older node must not lose members written by a newer node.
func TestUnknownMembersSurvive(t *testing.T) {
	t.Parallel()
	t.Run("warehouse", registrytest.KeepsUnknown[registry.Warehouse])
	t.Run("namespace", registrytest.KeepsUnknown[registry.Namespace])
	t.Run("entry", registrytest.KeepsUnknown[registry.Entry])
	t.Run("pointer", registrytest.KeepsUnknown[registry.Pointer])
	t.Run("table-uuid", registrytest.KeepsUnknown[registry.TableUUIDClaim])
	t.Run("location", registrytest.KeepsUnknown[registry.LocationClaim])
	t.Run("tombstone", registrytest.KeepsUnknown[registry.Tombstone])
	t.Run("dropped", registrytest.KeepsUnknown[registry.Dropped])
	t.Run("label", registrytest.KeepsUnknown[registry.Labels])
	t.Run("change", registrytest.KeepsUnknown[registry.Change])
	t.Run("task", registrytest.KeepsUnknown[registry.Task])
	t.Run("idempotency", registrytest.KeepsUnknown[registry.Idempotency])
	t.Run("assignment", registrytest.KeepsUnknown[registry.Assignment])
	t.Run("horizon", registrytest.KeepsUnknown[registry.Horizon])
	t.Run("store", registrytest.KeepsUnknown[registry.StoreID])
	t.Run("retention", registrytest.KeepsUnknown[registry.Retention])
	t.Run("maintenancepolicy", registrytest.KeepsUnknown[registry.MaintenancePolicy])
	t.Run("schedule", registrytest.KeepsUnknown[registry.Schedule])
	t.Run("due", registrytest.KeepsUnknown[registry.Due])
	t.Run("job", registrytest.KeepsUnknown[registry.Job])
	t.Run("run", registrytest.KeepsUnknown[registry.Run])
	t.Run("lease", registrytest.KeepsUnknown[registry.Lease])
	t.Run("monitor", registrytest.KeepsUnknown[registry.Monitor])
	t.Run("walk", registrytest.KeepsUnknown[registry.Walk])
	t.Run("pauses", registrytest.KeepsUnknown[registry.Pauses])
	t.Run("format", registrytest.KeepsUnknown[registry.Format])
	t.Run("principal", registrytest.KeepsUnknown[registry.Principal])
	t.Run("role", registrytest.KeepsUnknown[registry.Role])
	t.Run("grants", registrytest.KeepsUnknown[registry.Grants])
	t.Run("epoch", registrytest.KeepsUnknown[registry.Epoch])
	t.Run("recent", registrytest.KeepsUnknown[registry.Recent])
	t.Run("secret", registrytest.KeepsUnknown[registry.Secret])
	t.Run("secret-store", registrytest.KeepsUnknown[registry.SecretStore])
	t.Run("access-store", registrytest.KeepsUnknown[registry.AccessStore])
	t.Run("maker", registrytest.KeepsUnknown[registry.Maker])
	t.Run("public-key", registrytest.KeepsUnknown[registry.PublicKey])
	t.Run("console-key", registrytest.KeepsUnknown[registry.ConsoleKey])
}

// TestUnknownMembersOfLists: an object in a list keeps its unknown members when other objects are
// added or removed, and gets none of theirs.
func TestUnknownMembersOfLists(t *testing.T) {
	t.Parallel()
	const before = `{"time":"2026-11-21T10:11:12Z","elapsed-ns":9,"marks":[{"position":1,"elapsed-ns":1,"later":1},{"position":2,"elapsed-ns":2},{"later":3,"position":3,"elapsed-ns":3}]}`
	const after = `{"time":"2026-11-21T10:11:12Z","elapsed-ns":9,"marks":[{"position":2,"elapsed-ns":2},{"position":3,"elapsed-ns":3,"later":3},{"position":4,"elapsed-ns":4}]}`
	read, err := registry.Decode[registry.Retention](registry.Record{Key: registry.RetentionKey(), ETag: someETag, Value: []byte(before)})
	if err != nil {
		t.Fatal(err)
	}
	read.Marks = append(read.Marks[1:], registry.Mark{Position: 4, Elapsed: 4})
	if written, err := registry.Encode(read); err != nil || string(written) != after {
		t.Errorf("written as %s, %v\nwant       %s", written, err, after)
	}
}

// decoders returns Decode for every struct that is the value of a record.
func decoders() map[reflect.Type]func(registry.Record) (registry.Value, error) {
	decoders := make(map[reflect.Type]func(registry.Record) (registry.Value, error))
	addDecoder[registry.Warehouse](decoders)
	addDecoder[registry.Namespace](decoders)
	addDecoder[registry.Entry](decoders)
	addDecoder[registry.Pointer](decoders)
	addDecoder[registry.TableUUIDClaim](decoders)
	addDecoder[registry.LocationClaim](decoders)
	addDecoder[registry.Tombstone](decoders)
	addDecoder[registry.Dropped](decoders)
	addDecoder[registry.Labels](decoders)
	addDecoder[registry.Change](decoders)
	addDecoder[registry.Task](decoders)
	addDecoder[registry.Idempotency](decoders)
	addDecoder[registry.Assignment](decoders)
	addDecoder[registry.Horizon](decoders)
	addDecoder[registry.StoreID](decoders)
	addDecoder[registry.Retention](decoders)
	addDecoder[registry.MaintenancePolicy](decoders)
	addDecoder[registry.Schedule](decoders)
	addDecoder[registry.Due](decoders)
	addDecoder[registry.Job](decoders)
	addDecoder[registry.Run](decoders)
	addDecoder[registry.Lease](decoders)
	addDecoder[registry.Monitor](decoders)
	addDecoder[registry.Walk](decoders)
	addDecoder[registry.Pauses](decoders)
	addDecoder[registry.Format](decoders)
	addDecoder[registry.Principal](decoders)
	addDecoder[registry.Role](decoders)
	addDecoder[registry.Grants](decoders)
	addDecoder[registry.Epoch](decoders)
	addDecoder[registry.Recent](decoders)
	addDecoder[registry.Secret](decoders)
	addDecoder[registry.SecretStore](decoders)
	addDecoder[registry.AccessStore](decoders)
	addDecoder[registry.Maker](decoders)
	addDecoder[registry.PublicKey](decoders)
	addDecoder[registry.ConsoleKey](decoders)
	return decoders
}

func addDecoder[T registry.Value](decoders map[reflect.Type]func(registry.Record) (registry.Value, error)) {
	decoders[reflect.TypeFor[T]()] = func(r registry.Record) (registry.Value, error) { return registry.Decode[T](r) }
}

func TestEveryValueHasAGoldenFile(t *testing.T) {
	t.Parallel()
	covered := make(map[reflect.Type]bool)
	for _, values := range goldenValues() {
		covered[reflect.TypeOf(values[0])] = true
	}
	for valueType := range decoders() {
		if !covered[valueType] {
			t.Errorf("%s has no golden file", valueType)
		}
	}
	files, err := filepath.Glob(goldenFile("*"))
	if err != nil || len(files) != len(goldenValues()) {
		t.Errorf("%d golden files for %d values, %v", len(files), len(goldenValues()), err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]registry.Record{
		"no record":   {},
		"empty":       {Key: registry.PointerKey(someID), ETag: someETag},
		"no JSON":     {Key: registry.PointerKey(someID), ETag: someETag, Value: []byte("{")},
		"a list":      {Key: registry.PointerKey(someID), ETag: someETag, Value: []byte("[]")},
		"more behind": {Key: registry.PointerKey(someID), ETag: someETag, Value: []byte("{}{}")},
		"short id":    {Key: registry.PointerKey(someID), ETag: someETag, Value: []byte(`{"id":"00"}`)},
		"bad id":      {Key: registry.PointerKey(someID), ETag: someETag, Value: []byte(`{"id":"` + strings.Repeat("x", 32) + `"}`)},
		"bad time":    {Key: registry.PointerKey(someID), ETag: someETag, Value: []byte(`{"since":"yesterday"}`)},
	}
	for name, record := range tests {
		if got, err := registry.Decode[registry.Pointer](record); err == nil {
			t.Errorf("%s: decoded as %+v", name, got)
		} else if record.Exists() && !strings.Contains(err.Error(), record.Key.String()) {
			t.Errorf("%s: the error does not name the record: %v", name, err)
		}
	}
}

// FuzzDecode decodes arbitrary bytes as every kind of value. A value that can be decoded can be
// encoded, and further rounds do not change it.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob(goldenFile("*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(content) {
			f.Add(bytes.TrimSpace(line))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		for valueType, decode := range decoders() {
			record := registry.Record{Key: registry.FormatKey(), ETag: someETag, Value: value}
			decoded, err := decode(record)
			if err != nil {
				continue
			}
			first, err := registry.Encode(decoded)
			if err != nil {
				t.Fatalf("%s: %+v was read from %q but cannot be written: %v", valueType, decoded, value, err)
			}
			record.Value = first
			if decoded, err = decode(record); err != nil {
				t.Fatalf("%s: %q was written and cannot be read: %v", valueType, first, err)
			}
			second, err := registry.Encode(decoded)
			if err != nil || !bytes.Equal(first, second) {
				t.Fatalf("%s: %q was written, read and written as %q, %v", valueType, first, second, err)
			}
		}
	})
}

// FuzzUnmarshalID parses arbitrary text as an ID and as an ETag.
func FuzzUnmarshalID(f *testing.F) {
	for _, text := range []string{"", "00", someID.String(), strings.ToUpper(otherID.String()), strings.Repeat("0", 33), strings.Repeat("g", 32)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var id registry.ID
		var etag registry.ETag
		idErr, etagErr := id.UnmarshalText([]byte(text)), etag.UnmarshalText([]byte(text))
		if (idErr == nil) != (etagErr == nil) {
			t.Fatalf("%q: as an ID %v, as an ETag %v", text, idErr, etagErr)
		}
		if idErr == nil && (id.String() != strings.ToLower(text) || etag.String() != id.String()) {
			t.Fatalf("%q was read as %s and %s", text, id, etag)
		}
	})
}

// A member that is nested too deeply to be kept is an error, and not lost silently.
func TestDecodeRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	for depth, kept := range map[int]bool{400: true, 600: false} {
		value := []byte(`{"version":1,"later":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}")
		format, err := registry.Decode[registry.Format](registry.Record{Key: registry.FormatKey(), ETag: someETag, Value: value})
		if (err == nil) != kept {
			t.Errorf("depth %d: got error %v", depth, err)
		}
		if written, err := registry.Encode(format); kept && string(written) != string(value) {
			t.Errorf("depth %d: was written as %s, %v", depth, written, err)
		}
	}
}

// TestAsOf: if a record was written while the store's clock was ahead, its whole wait begins now. A
// record that was just written by a node with a slightly fast clock is unchanged.
func TestAsOf(t *testing.T) {
	t.Parallel()
	const wait = 24 * time.Hour
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		written time.Time
		moved   bool
	}{{now.Add(-time.Hour), false}, {now.Add(time.Minute), false}, {now.Add(time.Minute + 1), true}, {now.AddDate(1, 0, 0), true}} {
		end := row.written.Add(wait)
		if row.moved {
			end = now.Add(wait)
		}
		task, moved := registry.Task{Created: row.written, NotBefore: row.written.Add(wait)}.AsOf(now)
		if moved != row.moved || !task.NotBefore.Equal(end) {
			t.Errorf("a task of %s waits until %s (%t)", row.written, task.NotBefore, moved)
		}
		job, moved := registry.Job{WaitsFrom: row.written, NotBefore: row.written.Add(wait)}.AsOf(now)
		if moved != row.moved || !job.NotBefore.Equal(end) {
			t.Errorf("a job of %s waits until %s (%t)", row.written, job.NotBefore, moved)
		}
	}
	if task, _ := (registry.Task{Created: now.AddDate(1, 0, 0)}).AsOf(now); !task.NotBefore.IsZero() {
		t.Errorf("a task that was to begin at once waits until %s", task.NotBefore)
	}
}
