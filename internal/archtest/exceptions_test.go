package archtest

// exceptionKey names a rule and the file (or folder) that may break it.
type exceptionKey struct{ rule, at string }

// exceptions returns who may break a rule, and why.
func exceptions() map[exceptionKey]string {
	return map[exceptionKey]string{}
}
