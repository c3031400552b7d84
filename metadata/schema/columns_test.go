package schema_test

import (
	"fmt"
	"strings"
	"testing"
)

// The paths of the fields in a struct with a huge name do not repeat that name.
func TestColumnsInAHugeName(t *testing.T) {
	t.Parallel()
	const fields = 5000
	var inside []string
	for id := 2; id <= fields; id++ {
		inside = append(inside, fmt.Sprintf(`{"id":%d,"name":"f%d","required":false,"type":"int"}`, id, id))
	}
	s := mustParse(t, `{"id":1,"name":"`+strings.Repeat("x", 1<<20)+`","required":false,"type":{"type":"struct","fields":[`+
		strings.Join(inside, ",")+`]}}`)
	columns, bytes := s.Columns(), 0
	for _, column := range columns {
		bytes += len(column.Path)
	}
	if len(columns) != fields || bytes > 4<<20 {
		t.Errorf("%d columns have paths of %d bytes", len(columns), bytes)
	}
	if !s.HasField(fields) || s.HasField(fields+1) {
		t.Errorf("fields are not found by their ids")
	}
}
