package metadata

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Facts are the inputs for planning the maintenance of a table without reading its manifests. Facts
// reads only the index of the document and two snapshots, however large the document is.
type Facts struct {
	Snapshots int
	FirstMS   int64 // time of the first snapshot in the document; 0 without snapshots
	Refs      int
	Sequence  int64 // last sequence number
	// Operation, Files, Deletes and Bytes come from the summary of main's head. If the summary
	// lacks them, Operation is empty and the others are Unsaid.
	Operation             string
	Files, Deletes, Bytes int64
	// Rules is a hash of the maintenance settings in the table itself: properties, and the
	// retention of refs.
	Rules string
}

// Unsaid is a number that a summary does not have.
const Unsaid = -1

// careProperties are properties with maintenance settings. Properties with a prefix in carePrefixes
// are such settings too.
var (
	careProperties = []string{"gc.enabled", propEncryptionKeyID, "write.target-file-size-bytes"}
	carePrefixes   = []string{"history.expire.", "commit.manifest.", ownPrefix + "maintenance."}
)

// Facts returns the facts of d.
func (d *Document) Facts() Facts {
	all := d.arrays[snapshots]
	f := Facts{
		Snapshots: all.len(), Refs: len(d.refs), Sequence: d.lastSequenceNumber,
		Files: Unsaid, Deletes: Unsaid, Bytes: Unsaid, Rules: d.careRules(),
	}
	if all.len() > 0 {
		first := d.snapshot(all.at(0))
		f.FirstMS = first.timestampMS
	}
	at, ok := d.snapshotAt.find(all, d.currentSnapshotID)
	if !ok {
		return f
	}
	head := d.snapshot(all.at(at))
	if head.summary == nil {
		return f
	}
	c := reread(head.summary)
	_ = c.Object(func(key []byte) (err error) { // the summary was read before
		switch string(key) {
		case "operation":
			f.Operation, err = c.string("operation")
		case "total-data-files":
			f.Files, err = c.numeral()
		case "total-delete-files":
			f.Deletes, err = c.numeral()
		case "total-files-size":
			f.Bytes, err = c.numeral()
		default:
			err = c.Skip()
		}
		return err
	})
	return f
}

// numeral consumes a number in a string. It returns Unsaid if the string is not a number.
func (c *cursor) numeral() (int64, error) {
	text, err := c.string("")
	if err != nil {
		return Unsaid, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return Unsaid, nil
	}
	return n, nil
}

// careRules returns the hash of the maintenance settings in d. It is empty if d has no such
// settings.
func (d *Document) careRules() string {
	var said []string
	for name, value := range d.props {
		if isCareProperty(name) {
			said = append(said, name+"\x00"+value)
		}
	}
	for i := range d.refs {
		r := &d.refs[i]
		if r.minToKeep.given || r.maxAgeMS.given || r.maxRefAge.given {
			said = append(said, "ref "+r.name+"\x00"+string(r.appendJSON(nil)))
		}
	}
	if len(said) == 0 {
		return ""
	}
	slices.SortFunc(said, cmp.Compare[string])
	hash := xxhash.New()
	for _, text := range said {
		_, _ = hash.WriteString(strconv.Itoa(len(text)) + ":" + text)
	}
	const hexadecimal = 16
	return strconv.FormatUint(hash.Sum64(), hexadecimal)
}

func isCareProperty(name string) bool {
	return slices.Contains(careProperties, name) ||
		slices.ContainsFunc(carePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
