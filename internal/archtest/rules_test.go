package archtest

import "testing"

// rule is a rule that the whole source must follow.
type rule struct {
	name  string
	check func(m *module) []violation
}

// rules returns every rule about the source. Rules about documents have tests of their own.
func rules() []rule {
	return []rule{
		{"imports", checkImports},
		{"drivers", checkDrivers},
		{"forbidden imports", checkForbiddenImports},
		{"test helpers", checkTestHelpers},
		{"package doc", checkPackageDocs},
		{"exported doc", checkExportedDocs},
		{"banned", checkBanned},
		{"init", checkInit},
		{"mutable variable", checkVariables},
		{"error text", checkErrorText},
		{"context field", checkContextFields},
		{"skip", checkSkips},
		{"path parameter", checkPathParameters},
		{"sql", checkSQL},
		{"todo", checkTODO},
		{"prose", checkProse},
		{"types", checkTypes},
		{"one caller of Apply", checkApply},
		{"one caller of deletion", checkDeletion},
		{"system caller", checkSystem},
		{"operation", checkOperations},
		{"context value", checkContextValues},
		{"example", checkExamples},
		{"file size", checkFileSize},
		{"log message", checkMessages},
	}
}

// TestRules checks the whole repository.
func TestRules(t *testing.T) {
	t.Parallel()
	m := loadModule(t)
	used := make(map[exceptionKey]bool)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, v := range r.check(m) {
				key := exceptionKey{rule: v.rule, at: v.at}
				if _, ok := exceptions()[key]; ok {
					used[key] = true
					continue
				}
				t.Error(v)
			}
		})
	}
	for key, reason := range exceptions() {
		if !used[key] {
			t.Errorf("exception for %s (%s) is not needed any more; its reason was: %s", key.at, key.rule, reason)
		}
	}
}

// TestRulesSeeFaults runs each rule on source that breaks it, and on source that does not.
func TestRulesSeeFaults(t *testing.T) {
	t.Parallel()
	for _, test := range ruleCases() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := parse(t, test.dir, test.files)
			var got []violation
			for _, r := range rules() {
				if r.name == test.rule {
					got = r.check(m)
				}
			}
			if len(got) != test.want {
				t.Errorf("rule %q found %d faults, want %d: %v", test.rule, len(got), test.want, got)
			}
		})
	}
}

// TestEveryRuleIsShown fails if the cases have no source that breaks a rule.
func TestEveryRuleIsShown(t *testing.T) {
	t.Parallel()
	shown := make(map[string]bool)
	for _, test := range ruleCases() {
		if test.want > 0 {
			shown[test.rule] = true
		}
	}
	for _, r := range rules() {
		if !shown[r.name] {
			t.Errorf("no case shows what rule %q finds", r.name)
		}
	}
}
