package histories

import "moorage"

// sharedVersions returns histories in which commits share a version.
func sharedVersions() []checkerTest {
	unknown := Answer{Err: moorage.Errorf(moorage.KindCommitUnknown, "no answer")}
	refused := Answer{Err: moorage.Errorf(moorage.KindCommitFailed, "refused")}
	appendTo := func(call Call, table string, parent, snapshot int64) Call {
		call.Action, call.Table, call.Parent, call.Snapshot, call.Sequence = Append, table, parent, snapshot, snapshot
		return call
	}
	return []checkerTest{
		{"three share a version", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			h.answered(calls, h.versionOf(calls, "b", "a", ""))
			h.load(0, "b")
			h.set(0, "b", "c")
		}, true},
		{"an append shares a version", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			calls[1] = appendTo(calls[1], "x", 0, 1)
			h.answered(calls, h.versionOf(calls, "b", "a", ""))
			h.load(0, "b")
		}, true},
		{"two appends share a version", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(2)
			calls[0], calls[1] = appendTo(calls[0], "x", 0, 1), appendTo(calls[1], "x", 0, 2)
			made := []Call{calls[0], appendTo(calls[1], "x", 1, 2)}
			h.answered(calls, h.versionOf(made, "b", "a", ""))
		}, false},
		{"a member appends to another head than it requires", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(2)
			calls[1] = appendTo(calls[1], "x", 7, 8)
			made := h.together(2)
			made[1] = appendTo(made[1], "x", 0, 8)
			h.answered(calls, h.versionOf(made, "b", "a", ""))
		}, false},
		{"a member is answered a version without its effect", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			h.answered(calls, h.versionOf(calls[:2], "b", "a", ""))
			h.load(0, "b")
		}, false},
		{"a member is answered the version after that with its effect", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(2)
			h.answered(calls[:1], h.versionOf(calls, "b", "a", ""))
			call := h.next(Set, 0)
			call.Client = 2
			h.answered([]Call{call, calls[1]}, h.version(call, "c", "b", ""))
		}, false},
		{"a lost member, which the next version shows", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			h.answered(calls[:2], h.versionOf(calls[:2], "b", "a", ""))
			h.answered(calls[2:], h.versionOf(calls, "b2", "a", ""))
			h.load(0, "b")
		}, false},
		{"a member happens twice", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(2)
			h.answered(calls, h.versionOf(calls, "b", "a", ""))
			between := h.next(Set, 0)
			between.Client = 1
			h.answered([]Call{between}, h.version(between, "c", "b", ""))
			again := h.next(Set, 0)
			again.Client = 2
			h.answered([]Call{again}, h.versionOf([]Call{again, calls[1]}, "d", "c", ""))
		}, false},
		{"a member without an answer happens twice", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			h.answered(calls[:1], h.versionOf(calls[:2], "b", "a", ""))
			h.answered(calls[1:2], unknown)
			between := h.next(Set, 0)
			between.Client = 1
			h.answered([]Call{between}, h.version(between, "c", "b", ""))
			h.answered(calls[2:], h.versionOf(calls[1:], "d", "c", ""))
		}, false},
		{"answered although the Apply failed", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			h.answered(calls, h.versionOf(calls, "b", "a", ""))
			h.load(0, "a")
		}, false},
		{"a member is refused, and its effect is there", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			calls[1] = appendTo(calls[1], "x", 0, 1)
			h.answered(calls[:1], h.versionOf(calls, "b", "a", ""))
			h.answered(calls[1:2], refused)
			h.answered(calls[2:], unknown)
			h.load(0, "b")
		}, false},
		{"an append is refused because of one in the version that others share", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			calls[1], calls[2] = appendTo(calls[1], "x", 0, 1), appendTo(calls[2], "x", 0, 2)
			answer := h.versionOf(calls[:2], "b", "a", "")
			from := h.now()
			h.answered(calls[:2], answer)
			h.add(from, from+5, calls[2], refused)
		}, true},
		{"a member has no answer", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			answer := h.versionOf(calls, "b", "a", "")
			from := h.now()
			h.add(from, from+5, calls[0], unknown)
			h.add(from, from+5, calls[1], answer)
			h.add(from, from+5, calls[2], unknown)
			h.load(0, "b")
		}, true},
		{"none has an answer, and all are seen late", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			h.versionOf(calls, "b", "a", "")
			h.answered(calls, unknown)
			h.load(0, "a")
			h.load(0, "b")
		}, true},
		{"none has an answer, and all are seen and undone", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(3)
			h.versionOf(calls, "b", "a", "")
			h.answered(calls, unknown)
			h.load(0, "b")
			h.load(0, "a")
		}, false},
		{"a member is answered after the next version was made", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(2)
			answer := h.versionOf(calls, "b", "a", "")
			from := h.now()
			h.add(from, from+5, calls[0], answer)
			h.add(from, from+500, calls[1], answer)
			h.set(0, "b", "c")
			h.load(0, "c")
		}, true},
		{"a version is seen before one of its members is asked for", func(h *handmade) {
			h.create(0, "a", "x")
			calls := h.together(2)
			answer := h.versionOf(calls, "b", "a", "")
			h.answered(calls[:1], answer)
			h.load(0, "b")
			h.answered(calls[1:], answer)
		}, false},
	}
}
