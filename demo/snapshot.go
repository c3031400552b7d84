package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"strconv"
	"strings"

	"moorage/manifests"
	"moorage/storage"
)

// tableParts has the parts of a metadata file that are needed to make a snapshot.
type tableParts struct {
	LastSequence int64             `json:"last-sequence-number"`
	SchemaID     int               `json:"current-schema-id"`
	Schemas      []json.RawMessage `json:"schemas"`
	Specs        []json.RawMessage `json:"partition-specs"`
	Snapshots    []struct {
		ID      int64             `json:"snapshot-id"`
		List    string            `json:"manifest-list"`
		Summary map[string]string `json:"summary"`
	} `json:"snapshots"`
	Refs map[string]struct {
		SnapshotID int64 `json:"snapshot-id"`
	} `json:"refs"`
}

// totals maps the keys of totals in a summary to the keys of the counts that add to them.
var totals = map[string]string{
	"total-data-files": "added-data-files", "total-records": "added-records", "total-files-size": "added-files-size",
	"total-delete-files": "added-delete-files", "total-position-deletes": "added-position-deletes",
}

// snapshot commits files as a new snapshot of a branch. added has the counts for its summary.
func (t *table) snapshot(ctx context.Context, step, branch string, files []manifests.AuthoredFile,
	added map[string]int64) error {
	var parts tableParts
	if err := json.Unmarshal(t.document.Raw(), &parts); err != nil {
		return fmt.Errorf("read the metadata of %s: %w", t.ident.Name, err)
	}
	id := snapshotID(step)
	authored := manifests.Authored{
		Schema: parts.Schemas[len(parts.Schemas)-1], Spec: parts.Specs[0], SnapshotID: id,
		Sequence: parts.LastSequence + 1,
		Manifest: storage.Join(t.document.Location(), "metadata", fmt.Sprintf("%d-m0.avro", id)), Files: files,
	}
	summary := map[string]string{"operation": "append", stepKey: step, "engine-name": "moorage-demo"}
	if files[0].Deletes {
		summary["operation"] = "overwrite"
	}
	before := map[string]string{}
	if head, ok := parts.Refs[branch]; ok {
		authored.Parent = &head.SnapshotID
		for _, s := range parts.Snapshots {
			if s.ID != head.SnapshotID {
				continue
			}
			before = s.Summary
			var err error
			if authored.Base, err = t.read(ctx, s.List); err != nil {
				return err
			}
		}
	}
	for key, n := range added {
		summary[key] = strconv.FormatInt(n, 10)
	}
	for total, key := range totals {
		n, _ := strconv.ParseInt(before[total], 10, 64) // absent in the first snapshot
		summary[total] = strconv.FormatInt(n+added[key], 10)
	}
	manifest, list, err := authored.Encode()
	if err != nil {
		return fmt.Errorf("make the manifests of %s: %w", t.ident.Name, err)
	}
	listPath := storage.Join(t.document.Location(), "metadata", fmt.Sprintf("snap-%d-1-demo.avro", id))
	if err := t.create(ctx, authored.Manifest, manifest); err != nil {
		return err
	}
	if err := t.create(ctx, listPath, list); err != nil {
		return err
	}
	snapshot := map[string]any{
		"snapshot-id": id, "sequence-number": authored.Sequence, "timestamp-ms": t.Now().UnixMilli(),
		"manifest-list": listPath, "summary": maps.Clone(summary), "schema-id": parts.SchemaID,
	}
	if authored.Parent != nil {
		snapshot["parent-snapshot-id"] = *authored.Parent
	}
	updates, err := json.Marshal([]map[string]any{
		{"action": "add-snapshot", "snapshot": snapshot},
		{"action": "set-snapshot-ref", "ref-name": branch, "type": "branch", "snapshot-id": id},
	})
	if err != nil {
		return fmt.Errorf("describe the snapshot %s: %w", step, err)
	}
	return t.commit(ctx, string(updates))
}

func (t *table) read(ctx context.Context, path string) ([]byte, error) {
	file, _, err := t.Storage.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer file.Close()
	body, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return body, nil
}

// snapshotID returns the id of the snapshot of a step. The id is the same at each start.
func snapshotID(step string) int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(step))
	return int64(hash.Sum64() >> 1)
}

// monthOf returns the partition of a file of the table voyages, from the name of the file. It
// returns nil for other files.
func monthOf(name string) map[int]any {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(name, ".parquet"), "voyages-")
	if !ok {
		return nil
	}
	var year, month int
	if _, err := fmt.Sscanf(rest, "%d-%d", &year, &month); err != nil {
		panic(err) // the name is a constant
	}
	const epochYear, months, firstPartitionField = 1970, 12, 1000
	return map[int]any{firstPartitionField: int32((year-epochYear)*months + month - 1)}
}

// bound converts a bound from JSON, where numbers are float64, to the Go type for the column's
// type.
func (c column) bound(value any) any {
	number, ok := value.(float64)
	switch {
	case !ok || c.Type == "double":
		return value
	case c.Type == "int32":
		return int32(number)
	}
	return int64(number)
}
