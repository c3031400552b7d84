package browse

// DropIndex drops the index of all names, if there is one.
func (b *Browse) DropIndex() { b.names.drop() }
