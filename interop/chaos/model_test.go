package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row is a row of a table: its writer, and a number that the writer never reuses.
type row struct{ writer, number int64 }

// content is a set of rows.
type content map[row]bool

func (c content) String() string {
	rows := make([]string, 0, len(c))
	for r := range c {
		rows = append(rows, fmt.Sprintf("%d/%d", r.writer, r.number))
	}
	slices.Sort(rows)
	return strings.Join(rows, " ")
}

// effect returns the rows of a ref after a change. It does not modify its argument.
type effect func(before content) content

func adds(rows []row) effect {
	return func(before content) content {
		after := maps.Clone(before)
		for _, r := range rows {
			after[r] = true
		}
		return after
	}
}

func removesBelow(number int64) effect {
	return func(before content) content {
		after := maps.Clone(before)
		maps.DeleteFunc(after, func(r row, _ bool) bool { return r.number < number })
		return after
	}
}

func exchanges(gone, rows []row) effect {
	return func(before content) content {
		after := adds(rows)(before)
		for _, r := range gone {
			delete(after, r)
		}
		return after
	}
}

// stays is the effect of a change that only rewrites files.
func stays(before content) content { return before }

func becomes(rows content) effect { return func(content) content { return rows } }

// mayMax bounds the number of possible contents that a writer tracks. Each change without an answer
// can double it.
const mayMax = 32

// model tracks a writer's knowledge of the rows of main. A change without an answer may have
// happened, so main can have one of several contents. model tracks only acknowledged tags and
// branches.
type model struct {
	may []content
	// unsettled means that a change may still happen: its engine has given up, but a node may still
	// execute it. The change requires the main that it saw. So the next acknowledged change rules
	// it out.
	unsettled bool
	refs      map[string]content
}

func newModel() *model { return &model{may: []content{{}}, refs: make(map[string]content)} }

// did records the outcome of a change to main.
func (m *model) did(change effect, acknowledged bool) {
	var after []content
	if !acknowledged {
		after = slices.Clone(m.may)
	}
	for _, before := range m.may {
		next := change(before)
		if !slices.ContainsFunc(after, func(c content) bool { return maps.Equal(c, next) }) {
			after = append(after, next)
		}
	}
	m.may, m.unsettled = after, !acknowledged
}

// rested records that no change without an answer can happen any more.
func (m *model) rested() { m.unsettled = false }

// isCrowded reports whether the writer should read main before its next change.
func (m *model) isCrowded() bool { return len(m.may) > mayMax }

// known returns the rows of main, or false if they are not certain.
func (m *model) known() (content, bool) {
	if len(m.may) != 1 || m.unsettled {
		return nil, false
	}
	return m.may[0], true
}

// met compares the rows read from main with its possible contents.
func (m *model) met(rows content) error {
	for _, possible := range m.may {
		if !maps.Equal(possible, rows) {
			continue
		}
		if !m.unsettled {
			m.may = []content{possible}
		}
		return nil
	}
	var nearest string
	for _, possible := range m.may {
		lost, back := maps.Clone(possible), maps.Clone(rows)
		maps.DeleteFunc(lost, func(r row, _ bool) bool { return rows[r] })
		maps.DeleteFunc(back, func(r row, _ bool) bool { return possible[r] })
		if text := fmt.Sprintf("lost [%s], should not be there [%s]", lost, back); nearest == "" || len(text) < len(nearest) {
			nearest = text
		}
	}
	return fmt.Errorf("%d rows are read, of %d possible contents the nearest says: %s", len(rows), len(m.may), nearest)
}
