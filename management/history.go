package management

import (
	"context"
	"net/http"

	"moorage"
	"moorage/catalog/history"
	"moorage/internal/web"
	"moorage/management/client"
	"moorage/registry"
)

// historySizes are the page sizes of a history. The server reads the store once for each version.
var historySizes = web.PageSizes{Default: history.PageMax, Max: history.PageMax, Always: true}

// loadHistory answers with the history of an object.
func (s *server) loadHistory(w http.ResponseWriter, r *http.Request) error {
	asked, err := historyAsked(web.QueryOf(r))
	if err != nil {
		return err
	}
	var found history.History
	find := func(ctx context.Context, page moorage.Page) ([]client.Event, string, error) {
		asked.After, asked.Limit = page.After, page.Limit
		var err error
		found, err = s.config.History.Of(ctx, web.CallerOf(r), asked)
		return each(found.Versions, eventOf), found.Next, err
	}
	name := asked.Kind + " " + asked.Ident.Warehouse + " " + asked.Ident.String() + " " + asked.ID.String()
	return list(s, "history "+name, historySizes, find, func(versions []client.Event, next *string) any {
		return client.History{
			Object: historyObjectOf(found.Object), Versions: versions, Complete: found.IsComplete,
			NextPage: client.NextPage{NextPageToken: next},
		}
	})(w, r)
}

// historyAsked returns the object named in the query parameters.
func historyAsked(q web.Query) (asked history.Asked, err error) {
	text, given, err := q.Text("id")
	if err != nil {
		return asked, err
	}
	if given {
		if err := asked.ID.UnmarshalText([]byte(text)); err != nil {
			return asked, moorage.Errorf(moorage.KindBadRequest, "Invalid id: it has 32 hexadecimal digits")
		}
	}
	object, unnamed, err := objectNamed(q)
	if err != nil {
		return asked, err
	}
	asked.Ident = moorage.Identifier{Warehouse: object.Warehouse, Namespace: object.Namespace}
	switch {
	case given && unnamed != nil && object.Warehouse == "":
		return asked, nil
	case unnamed != nil:
		return asked, moorage.Errorf(moorage.KindBadRequest, "Name an object: %w", unnamed)
	case object.Table != "":
		asked.Kind, asked.Ident.Name = registry.ItemTable, object.Table
	case object.View != "":
		asked.Kind, asked.Ident.Name = registry.ItemView, object.View
	case len(object.Namespace) > 0 && object.Function == "":
		asked.Kind = registry.ItemNamespace
	case !given:
		return asked, moorage.Errorf(moorage.KindBadRequest,
			"Only a table, a view or a namespace has a history: name one, or an id")
	}
	if err := moorage.ValidateWarehouse(asked.Ident.Warehouse); err != nil || asked.Kind == "" {
		return asked, err
	}
	if asked.Kind == registry.ItemNamespace {
		return asked, asked.Ident.Namespace.Validate()
	}
	return asked, asked.Ident.Validate()
}

func historyObjectOf(object history.Object) client.HistoryObject {
	made := client.HistoryObject{
		ID: object.ID.String(), Kind: object.Kind, Warehouse: object.Ident.Warehouse,
		Namespace: append([]string{}, object.Ident.Namespace...), Name: object.Ident.Name, UUID: object.UUID,
		State: object.State, MetadataLocation: object.MetadataLocation,
	}
	if object.State == history.ObjectLive {
		return made
	}
	dropped := object.Dropped
	made.Dropped = &client.HistoryDrop{
		At: dropped.At, By: dropped.By, Purge: object.Purge, Ended: dropped.Ended, How: dropped.How,
		EndedBy: dropped.EndedBy,
	}
	if !dropped.Change.IsZero() {
		made.Dropped.Change = dropped.Change.String()
	}
	if !object.EndsAt.IsZero() {
		made.Dropped.EndsAt = &object.EndsAt
	}
	return made
}
