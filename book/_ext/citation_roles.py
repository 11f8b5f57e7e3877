"""A list of citations is no ARIA list: its children are entries of a bibliography, which the role does not allow."""


def drop_role(app, pagename, templatename, context, doctree):
    if context.get("body"):
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


def setup(app):
    app.connect("html-page-context", drop_role, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
