"""What a published total or the headers of a checkpoint say of an anatomy: candidates, what explains a total, the grade."""
