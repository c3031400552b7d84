// Package viewtest judges what clients saw of views that they create, replace and drop at once,
// while servers are killed.
//
// An Event is what a client knows about one call. Judge compares all of them:
//
//   - every acknowledged version is in its view, once, and every refused one in none;
//   - everything that a view was ever seen to hold is one list of versions, which only grows;
//   - a view that was dropped is gone, and one that is gone was dropped.
//
// It looks at requests and answers only, and must not know how the catalog works.
package viewtest
