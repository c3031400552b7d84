package management

import (
	"net/http"
	"strconv"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
	"moorage/management/client"
)

// rowsDefault is the number of rows if a request does not name one.
const rowsDefault = 20

// readRows answers with the first rows of a table.
func (s *server) readRows(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	ident, err := tableOfQuery(q)
	if err != nil {
		return err
	}
	var asked catalog.RowsRequest
	asked.Limit = rowsDefault
	texts := make(map[string]string)
	for _, name := range []string{"ref", "snapshot", "limit", "columns"} {
		text, given, err := q.Text(name)
		if err != nil {
			return err
		}
		if given {
			texts[name] = text
		}
	}
	if text, given := texts["limit"]; given {
		if asked.Limit, err = strconv.Atoi(text); err != nil {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid limit %.20q: it is not a number", text)
		}
	}
	ref, hasRef := texts["ref"]
	asked.Ref = ref
	if text, given := texts["snapshot"]; given {
		if hasRef {
			return moorage.Errorf(moorage.KindBadRequest, "Only one of ref and snapshot can be given")
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid snapshot %.20q: it is not a number", text)
		}
		asked.Snapshot = &id
	}
	if text := texts["columns"]; text != "" {
		separator := ","
		if strings.Contains(text, moorage.LevelSeparator) { // names can contain commas
			separator = moorage.LevelSeparator
		}
		asked.Columns = strings.Split(text, separator)
	}
	read, err := s.config.Versions(web.CallerOf(r), nil, nil).Rows(r.Context(), ident, asked)
	if err != nil {
		return err
	}
	answer := client.Rows{
		SnapshotID: read.SnapshotID, Columns: make([]client.RowColumn, 0, len(read.Columns)), ColumnsInAll: read.Width,
		Rows: read.Rows, Complete: read.IsComplete, Stopped: read.Stopped,
	}
	for _, column := range read.Columns {
		answer.Columns = append(answer.Columns, client.RowColumn(column))
	}
	return s.AnswerJSON(w, r, answer)
}
