// Package viewtest judges the answers about views that clients create, replace and drop
// concurrently, while servers are killed.
//
// An Event is what a client knows about one call. Judge compares all of them:
//
//   - every acknowledged version is in its view, once, and every refused version in none;
//   - all seen lists of a view's versions belong to one list, which only grows;
//   - a view that was dropped is gone, and a view that is gone was dropped.
//
// It uses only requests and answers, and must not know how the catalog works.
package viewtest
