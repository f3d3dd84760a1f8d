"""nbgrader's settings for this course: where things lie, and the words a student meets.

Every nbgrader command works from this folder as its manual says. The instructor's notebooks are
built from solutions/ by `make release`, never written by hand.
"""

c = get_config()  # pyright: ignore[reportUndefinedVariable]  (traitlets gives it)

c.CourseDirectory.course_id = "graded-transformer"
c.CourseDirectory.source_directory = "build/source"
c.CourseDirectory.release_directory = "exercises"

# What stands where an answer is missing: shown by `nbgrader validate` and by the failing test.
c.ClearSolutions.code_stub = {
    "python": '# YOUR CODE HERE\nraise NotImplementedError("not answered yet: replace this line")'
}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"
c.Validator.failed_warning = (
    "{num_failed} CELL(S) DO NOT PASS YET. The last line of each says what is wrong;\n"
    '"not answered yet" means that the answer above it is still to be written.\n'
)

# `nbgrader autograde` and formgrader's button grade as `python -m autograder grade` does.
c.Autograde.exporter_class = "autograder.classroom.hooks.AnySubmission"
c.Autograde.sanitize_preprocessors = ["autograder.classroom.hooks.Rebuild"]
c.Autograde.autograde_preprocessors = ["autograder.classroom.hooks.Grade"]
c.ExecutePreprocessor.timeout = 60  # for `nbgrader validate`, which runs on the student's machine
c.ExecutePreprocessor.extra_arguments = ["--log-level=ERROR"]  # kernels talk on this machine only

# A wrong answer costs its own question: in later ones that use it the reference stands in.
c.Autograder.reference_stands_in = True

# What a student reads: no source, input or expected value of a hidden test, nothing that runs.
c.GenerateFeedback.exporter_class = "autograder.classroom.nbgrader_page.StudentPage"
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "autograder.classroom.nbgrader_page.ForStudents",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# `nbgrader zip_collect` leaves out what is bad in an archive and collects everybody else's work.
# FromCanvas, FromMoodle or FromBlackboard in SafeCollector's place know how these name files.
c.ZipCollectApp.extractor_plugin = "autograder.classroom.unzip.SafeExtractor"
c.ZipCollectApp.collector_plugin = "autograder.classroom.unzip.SafeCollector"

# `nbgrader collect` follows no link that a student left in the exchange, takes nothing that one
# account made in another's name, and collects all others.
c.ExchangeFactory.collect = "autograder.classroom.inbound.SafeCollect"

# `nbgrader list --inbound` lists everybody else's where one submission cannot be read.
c.ExchangeFactory.list = "autograder.classroom.listed.SafeList"

# `nbgrader release_feedback` publishes every page, whatever its student is called.
c.ExchangeFactory.release_feedback = "autograder.classroom.outbound.SafeRelease"

# `nbgrader export` writes its table so that no name in it is a formula.
c.ExportApp.plugin_class = "autograder.classroom.grade_table.GradeTable"

# `python -m autograder handout DIR|ZIP`: what students get. `book` is where the book can be read,
# for a link to it; `url` is where the hand-out's zip file will lie, and gives notebooks a first
# cell that installs it on a hosted notebook service.
c.HandOut.packages = ["lab", "trainer"]
c.HandOut.requirements = "requirements/students.txt"
c.HandOut.readme = "handout/README.md"
c.HandOut.book = ""
c.HandOut.url = ""
c.HandOut.index = "https://download.pytorch.org/whl/cpu"  # without what only GPUs need

# `python -m autograder contest FOLDER`: who translates best after so many minutes of a processor.
c.Contest.module = "trainer.contest"
c.Contest.minutes = 10
