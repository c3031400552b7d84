package servers

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// View is a view, read from an answer.
type View struct {
	UUID    string   // the view-uuid
	Queries []string // the queries of all versions that were ever current, present one last
}

// View returns the view in an answer. It is an error if a version was current more than once.
func (a Answer) View() (View, error) {
	var body struct {
		Metadata struct {
			UUID     string `json:"view-uuid"`
			Current  int    `json:"current-version-id"`
			Versions []struct {
				ID              int `json:"version-id"`
				Representations []struct {
					SQL string `json:"sql"`
				} `json:"representations"`
			} `json:"versions"`
			Log []struct {
				ID int `json:"version-id"`
			} `json:"version-log"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(a.Text), &body); err != nil {
		return View{}, err
	}
	queries := map[int]string{}
	for _, version := range body.Metadata.Versions {
		if len(version.Representations) == 1 {
			queries[version.ID] = version.Representations[0].SQL
		}
	}
	view := View{UUID: body.Metadata.UUID}
	last := 0
	for _, entry := range body.Metadata.Log {
		view.Queries = append(view.Queries, queries[entry.ID])
		delete(queries, entry.ID)
		last = entry.ID
	}
	if len(view.Queries) != len(body.Metadata.Versions) || len(queries) > 0 || last != body.Metadata.Current ||
		view.UUID == "" {
		return view, fmt.Errorf("the versions of the view and its log do not agree: %s", a.Text)
	}
	return view, nil
}

// ViewsPath is the path of the views of a namespace.
func ViewsPath(namespace string) string { return "namespaces/" + namespace + "/views" }

// ViewPath is the path of a view.
func ViewPath(namespace, name string) string { return ViewsPath(namespace) + "/" + name }

// viewVersion returns a version with a query. The server assigns its number.
func viewVersion(namespace, query string) Object {
	return Object{
		"version-id": 1, "schema-id": 0, "timestamp-ms": time.Now().UnixMilli(), "summary": Object{},
		"default-namespace": []string{namespace},
		"representations":   []Object{{"type": "sql", "sql": query, "dialect": "spark"}},
	}
}

// NewView returns the body of a POST to ViewsPath. The request creates a view that has one column
// and keeps all its versions.
func NewView(namespace, name, query string) Object {
	return Object{
		"name": name, "view-version": viewVersion(namespace, query),
		"properties": map[string]string{"version.history.num-entries": strconv.Itoa(math.MaxInt32)},
		"schema": Object{"type": "struct", "schema-id": 0, "fields": []Object{
			{"id": 1, "name": "id", "required": false, "type": "string"},
		}},
	}
}

// NewVersion returns the body of a POST to ViewPath. The request gives a view another query. Unless
// uuid is empty, it requires that the view has this view-uuid.
func NewVersion(namespace, uuid, query string) Object {
	requirements := []Object{}
	if uuid != "" {
		requirements = []Object{{"type": "assert-view-uuid", "uuid": uuid}}
	}
	return Object{
		"requirements": requirements,
		"updates": []Object{
			{"action": "add-view-version", "view-version": viewVersion(namespace, query)},
			{"action": "set-current-view-version", "view-version-id": -1},
		},
	}
}
