"""Programs for whoever develops this project; nothing here is shipped."""
