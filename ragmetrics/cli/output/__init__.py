"""What commands print for people: tables and summaries."""
